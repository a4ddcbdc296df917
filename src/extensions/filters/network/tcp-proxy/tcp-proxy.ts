// The TCP proxy of one filter chain on one worker.

import { messageOf } from '../../../../common/errors/errors.js';
import type { DownstreamConnection, DownstreamHandler } from '../../../../listener/downstream-connection.js';
import type { HandedOverConnection } from '../../../../listener/hand-over.js';
import type { FilterTakeOver, TerminalNetworkFilter } from '../../../../listener/network-filter.js';
import { TcpStats } from '../../../../stats/layouts/tcp.js';
import type { Scope } from '../../../../stats/thread-stats.js';
import type { UpstreamThread } from '../../../../upstream/upstream-thread.js';
import { ProxiedConnection } from './proxied-connection.js';
import type { ProxyContext, TcpProxyOptions } from './proxy-context.js';
import { closeProxyLogs } from './proxy-logs.js';
import { TakenOverPair } from './taken-over-pair.js';

export class TcpProxy implements TerminalNetworkFilter, ProxyContext {
  readonly halfCloses = true;
  readonly thread: UpstreamThread;
  readonly options: TcpProxyOptions;
  readonly stats: Scope;
  readonly shortestTimeoutMs: number;
  /** Flushes in progress. They may outlive the proxy, whose stats may then belong to another one. */
  #flushes = 0;
  #isClosed = false;

  constructor(thread: UpstreamThread, options: TcpProxyOptions, stats: Scope) {
    this.thread = thread;
    this.options = options;
    this.stats = stats;
    const timeouts = [options.idleMs, options.maxConnectionMs].filter((ms) => ms > 0);
    this.shortestTimeoutMs = timeouts.length === 0 ? 0 : Math.min(...timeouts);
  }

  accept(downstream: DownstreamConnection): DownstreamHandler | undefined {
    const connection = new ProxiedConnection(this, downstream);
    try {
      connection.start();
    } catch (error) {
      connection.onFault();
      throw error;
    }
    return connection.isOver ? undefined : connection;
  }

  beginFlush(): () => void {
    this.#flushes++;
    this.stats.increment(TcpStats.at.upstream_flush_total);
    this.stats.increment(TcpStats.at.upstream_flush_active);
    return this.#endFlush;
  }

  readonly #endFlush = (): void => {
    if (this.#isClosed) return;
    this.#flushes--;
    this.stats.decrement(TcpStats.at.upstream_flush_active);
  };

  close(): void {
    this.#isClosed = true;
    this.stats.subtract(TcpStats.at.upstream_flush_active, this.#flushes);
    closeProxyLogs(this.options.logs);
  }

  prepareTakeOver(handedOver: HandedOverConnection, isClientBlocked: boolean): FilterTakeOver | string {
    const takenOver = TakenOverPair.from(handedOver.facts.progress);
    const server = handedOver.sockets[1];
    if (takenOver === undefined || server === undefined || handedOver.sockets.length !== 2)
      return 'it is not a proxied connection';
    const cluster = this.options.findCluster(takenOver.cluster);
    if (cluster === undefined) return `cluster '${takenOver.cluster}' is not a cluster of this proxy`;
    const host = cluster.hostAt(takenOver.host);
    if (host === undefined) return `cluster '${takenOver.cluster}' has no host ${takenOver.host}`;
    const { transport } = this.thread;
    let id: number;
    try {
      id = transport.adoptFrozen(server, cluster.bufferLimits, isClientBlocked);
    } catch (error) {
      return messageOf(error);
    }
    return {
      pausesClient: server.pending.length > cluster.bufferLimits.highWatermark,
      begin: (downstream) => {
        const connection = new ProxiedConnection(this, downstream);
        connection.takeOver(takenOver, cluster, host, id);
        return connection;
      },
      begun: () => transport.thaw(id),
      drop: () => transport.releaseFrozen(id),
    };
  }
}
