// The common context of all connections of one TCP proxy on one worker.

import type { ChainNames } from '../../../../access-log/stream/stream-info.js';
import type { MetadataMatch } from '../../../../http/routing/actions/metadata-match.js';
import type { Scope } from '../../../../stats/thread-stats.js';
import type { Cluster } from '../../../../upstream/cluster.js';
import type { ClusterReference } from '../../../../upstream/cluster-manager.js';
import type { MissingClusters, OnDemandSource } from '../../../../upstream/missing-clusters.js';
import type { UpstreamThread } from '../../../../upstream/upstream-thread.js';
import type { ConnectBackoff } from './connect-backoff.js';
import type { ProxyLogs } from './proxy-logs.js';
import type { TunnelRequest } from './tunnel-request.js';

/** The cluster of a connection, and what its host must have. */
export interface ClusterChoice {
  readonly reference: ClusterReference;
  /** Undefined: no requirement. */
  readonly match: MetadataMatch | undefined;
}

export interface TcpProxyOptions {
  /** Picks the cluster for a new connection. */
  pickCluster(): ClusterChoice;
  /** What hosts of a cluster must have that a network filter has selected. */
  match: MetadataMatch | undefined;
  /** Returns the cluster `name` if it is one of this proxy. */
  findCluster(name: string): Cluster | undefined;
  /** Returns any cluster, for connections whose cluster a network filter has selected. */
  selectedCluster(name: string): Cluster | undefined;
  /** Where missing clusters are requested; undefined: nowhere. */
  onDemand: OnDemand | undefined;
  /** 0: unlimited. */
  idleMs: number;
  maxConnectionMs: number;
  maxConnectAttempts: number;
  /** check_drain_close. */
  checksDrain: boolean;
  /** With hash-based load balancing, all connections of one client address go to one host. */
  hashesSourceIp: boolean;
  /** The delays between failed connects; undefined: none. */
  backoff: ConnectBackoff | undefined;
  /** Opens a tunnel through the host; undefined: the host gets the bytes of clients. */
  tunnel: TunnelRequest | undefined;
  logs: ProxyLogs;
  /** For logs. */
  chain: ChainNames;
}

/** The request of missing clusters. */
export interface OnDemand {
  readonly from: OnDemandSource;
  readonly clusters: MissingClusters;
  /** With TcpOnDemandStats. */
  readonly stats: Scope;
}

export interface ProxyContext {
  readonly thread: UpstreamThread;
  readonly options: TcpProxyOptions;
  /** Scope `tcp.<stat_prefix>.` */
  readonly stats: Scope;
  /**
   * Counts a client that has left while its bytes are still pending for the host. Returns a function to call when they are not.
   */
  beginFlush(): () => void;
  /** The shortest timeout; 0: none. */
  readonly shortestTimeoutMs: number;
}
