// The server context of streams to management servers.

import type { ApiConfigSource } from '../../config/generated/api.js';
import type { StatsStore } from '../../stats/store.js';
import type { CallingThread } from '../../upstream/calling-thread.js';
import type { ResourceReader } from '../resource-reader.js';

/** Context of GrpcSources (grpc-sources.ts), which is loaded when a subscription has `api_config_source` or `ads`. */
export interface GrpcSourcesContext {
  readonly store: StatsStore;
  readonly calls: CallingThread;
  /** dynamic_resources.ads_config. */
  readonly adsConfig: ApiConfigSource | undefined;
  /** Returns the encoded envoy.config.core.v3.Node of requests; called once. */
  node(): Promise<Uint8Array>;
  /** Creates a reader for one resource type of a stream. */
  createReader(): ResourceReader;
  /** Reports an unexpected exception that was caught. */
  readonly failed: (what: string, error: unknown) => void;
}
