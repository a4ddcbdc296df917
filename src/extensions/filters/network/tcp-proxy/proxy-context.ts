// What all connections of one TCP proxy have in common on one worker.

import type { AccessLogger } from '../../../../access-log/access-logger.js';
import type { Scope } from '../../../../stats/thread-stats.js';
import type { Cluster } from '../../../../upstream/cluster.js';
import type { UpstreamThread } from '../../../../upstream/upstream-thread.js';

export interface TcpProxyOptions {
  /** The cluster for a new connection; undefined when it does not exist. */
  pickCluster(): Cluster | undefined;
  /** The cluster of this name, if new connections may go to it. */
  findCluster(name: string): Cluster | undefined;
  /** Milliseconds; 0: for ever. */
  idleMs: number;
  maxConnectionMs: number;
  maxConnectAttempts: number;
  /** Where hosts are chosen by hash, all connections of one client address go to one host. */
  hashesSourceIp: boolean;
  accessLogs: readonly AccessLogger[];
}

export interface ProxyContext {
  readonly thread: UpstreamThread;
  readonly options: TcpProxyOptions;
  /** tcp.<stat_prefix>. */
  readonly stats: Scope;
  /** Counts bytes of a client that is gone, which wait for its host; what it returns is called when they do not any more. */
  beginFlush(): () => void;
  /** The shortest of the timeouts; 0: there is none. */
  readonly shortestTimeoutMs: number;
}
