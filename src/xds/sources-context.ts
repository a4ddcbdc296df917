// What subscriptions need of the server that has them.

import type { Bootstrap, Node } from '../config/generated/api.js';
import type { LoadCounts } from '../config/load/load.js';
import type { ClusterHosts } from '../grpc/cluster-hosts.js';
import type { StatsStore } from '../stats/store.js';
import type { DynamicOptions } from './reading/settings.js';

export interface SourcesContext {
  /** As it is now, with the node as the command line has changed it. */
  bootstrap(): Bootstrap;
  /** As management servers are told of it. */
  readonly node: Node;
  readonly store: StatsStore;
  /** For gRPC channels to clusters. */
  readonly hosts: ClusterHosts;
  readonly dynamic: DynamicOptions;
  /** What was counted while resources were read. */
  readonly counted: (counts: LoadCounts) => void;
  /** What should not happen, and was caught. */
  readonly failed: (what: string, error: unknown) => void;
}
