// The TCP proxy of one filter chain on one worker.

import type { AccessLogger } from '../../../../access-log/access-logger.js';
import type { ConnectionHandler } from '../../../../io/transport.js';
import type { DownstreamConnection } from '../../../../listener/downstream-connection.js';
import type { TerminalNetworkFilter } from '../../../../listener/network-filter.js';
import type { Scope } from '../../../../stats/thread-stats.js';
import type { Cluster } from '../../../../upstream/cluster.js';
import type { UpstreamThread } from '../../../../upstream/upstream-thread.js';
import { ProxiedConnection } from './proxied-connection.js';

export interface TcpProxyOptions {
  /** The cluster for a new connection; undefined when it does not exist. */
  pickCluster(): Cluster | undefined;
  /** Milliseconds; 0: for ever. */
  idleMs: number;
  maxConnectionMs: number;
  maxConnectAttempts: number;
  accessLogs: readonly AccessLogger[];
}

export class TcpProxy implements TerminalNetworkFilter {
  readonly thread: UpstreamThread;
  readonly options: TcpProxyOptions;
  /** tcp.<stat_prefix>. */
  readonly stats: Scope;
  /** The shortest of the timeouts; 0: there is none. */
  readonly shortestTimeoutMs: number;

  constructor(thread: UpstreamThread, options: TcpProxyOptions, stats: Scope) {
    this.thread = thread;
    this.options = options;
    this.stats = stats;
    const timeouts = [options.idleMs, options.maxConnectionMs].filter((ms) => ms > 0);
    this.shortestTimeoutMs = timeouts.length === 0 ? 0 : Math.min(...timeouts);
  }

  accept(downstream: DownstreamConnection): ConnectionHandler | undefined {
    const connection = new ProxiedConnection(this, downstream);
    connection.start();
    return connection.isOver ? undefined : connection;
  }
}
