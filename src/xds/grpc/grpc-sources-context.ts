// What streams to management servers need of the server that has them.

import type { ApiConfigSource } from '../../config/generated/api.js';
import type { ClusterHosts } from '../../grpc/cluster-hosts.js';
import type { StatsStore } from '../../stats/store.js';
import type { ResourceReader } from '../resource-reader.js';

/** Of GrpcSources (grpc-sources.ts), which is loaded when a subscription asks for `api_config_source` or `ads`. */
export interface GrpcSourcesContext {
  readonly store: StatsStore;
  /** For channels to clusters. */
  readonly hosts: ClusterHosts;
  /** dynamic_resources.ads_config. */
  readonly adsConfig: ApiConfigSource | undefined;
  /** The encoded envoy.config.core.v3.Node of requests; asked for once. */
  node(): Promise<Uint8Array>;
  /** One for each kind of resources of a stream. */
  createReader(): ResourceReader;
  /** What should not happen, and was caught. */
  readonly failed: (what: string, error: unknown) => void;
}
