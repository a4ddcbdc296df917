// A load reporting service (LRS) that records what it receives.

import type { Teardown } from '../harness/index.js';
import { type StreamService, startStreamService } from './stream-service.js';

const REQUEST = 'envoy.service.load_stats.v3.LoadStatsRequest';
const RESPONSE = 'envoy.service.load_stats.v3.LoadStatsResponse';

export interface Load {
  readonly total_successful_requests?: number;
  readonly total_error_requests?: number;
  readonly total_issued_requests?: number;
  readonly total_requests_in_progress?: number;
}

export interface ClusterLoad {
  readonly cluster_name: string;
  readonly cluster_service_name?: string;
  readonly upstream_locality_stats?: readonly (Load & {
    readonly locality: Record<string, string>;
    readonly priority?: number;
    readonly upstream_endpoint_stats?: readonly (Load & { readonly address: object })[];
  })[];
  readonly total_dropped_requests?: number;
  readonly dropped_requests?: readonly { readonly category: string; readonly dropped_count: number }[];
  readonly load_report_interval: { readonly seconds?: number; readonly nanos?: number };
}

/** A LoadStatsRequest; numbers of 64 bits are numbers. */
export interface LoadReport {
  readonly node: Record<string, unknown>;
  readonly cluster_stats?: readonly ClusterLoad[];
}

export interface LoadService extends Omit<StreamService<LoadReport>, 'received' | 'send'> {
  readonly reports: LoadReport[];
  /** Sends a LoadStatsResponse on the last stream. */
  request(response: object): void;
}

export async function startLoadService(t: Teardown): Promise<LoadService> {
  const { received, send, ...service } = await startStreamService<LoadReport>(t, REQUEST, RESPONSE);
  return { ...service, reports: received, request: send };
}
