// The TCP proxy of one filter chain on one worker.

import type { ConnectionHandler } from '../../../../io/transport.js';
import type { DownstreamConnection } from '../../../../listener/downstream-connection.js';
import type { TerminalNetworkFilter } from '../../../../listener/network-filter.js';
import type { Scope } from '../../../../stats/thread-stats.js';
import type { UpstreamThread } from '../../../../upstream/upstream-thread.js';
import { ProxiedConnection } from './proxied-connection.js';
import type { ProxyContext, TcpProxyOptions } from './proxy-context.js';

export class TcpProxy implements TerminalNetworkFilter, ProxyContext {
  readonly thread: UpstreamThread;
  readonly options: TcpProxyOptions;
  readonly stats: Scope;
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
