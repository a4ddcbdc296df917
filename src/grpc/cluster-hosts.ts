// The hosts of a cluster as gRPC channels follow them.

import type { Address } from '../io/address.js';

export interface ClusterHosts {
  /**
   * Tells the addresses that requests may go to: soon, and whenever they change; an empty list while there are none. Returns
   * what ends it.
   */
  watchHosts(cluster: string, onHosts: (addresses: readonly Address[]) => void): () => void;
  /** The cluster's connect_timeout. */
  connectTimeoutMs(cluster: string): number;
}
