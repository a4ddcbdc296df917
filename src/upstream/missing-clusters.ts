// Clusters that requests and connections name but that do not exist yet, and that can be requested from a source (on-demand CDS).

import { durationMs } from '../common/time/duration.js';
import type { ConfigSource, Duration } from '../config/generated/api.js';

/** Why a wait for a cluster has ended. */
export type ClusterOutcome = 'available' | 'missing' | 'timeout';

export interface ClusterWaiter {
  /** Called in a turn of its own. An available cluster is in use on this thread. */
  clusterSettled(outcome: ClusterOutcome): void;
}

/** Where missing clusters are requested. Plain data. */
export interface OnDemandSource {
  readonly source: ConfigSource;
  /** How long a request waits. */
  readonly timeoutMs: number;
}

/** The missing clusters of a thread. */
export interface MissingClusters {
  /** Requests a cluster. Calls `waiter` once, later. */
  request(source: OnDemandSource, name: string, waiter: ClusterWaiter): void;
  /** Cancels the request of `waiter`, which is not called any more. */
  cancel(name: string, waiter: ClusterWaiter): void;
}

/** Returns undefined if `source` is not configured. */
export function onDemandSource(
  source: ConfigSource | undefined,
  timeout: Duration | undefined,
  defaultMs: number,
): OnDemandSource | undefined {
  return source && { source, timeoutMs: durationMs(timeout, defaultMs) };
}
