// The HTTP connection manager of one filter chain on one worker: it serves accepted connections.

import type { RouteConfiguration } from '../config/generated/api.js';
import type { Transport } from '../io/transport/transport.js';
import type { DownstreamConnection, DownstreamHandler } from '../listener/downstream-connection.js';
import type { HandedOverConnection } from '../listener/hand-over.js';
import type { FilterTakeOver, TerminalNetworkFilter } from '../listener/network-filter.js';
import { HttpStats } from '../stats/layouts/http.js';
import { firstHeadTimeout, type HeadTimeout } from './connections/head-timeouts.js';
import { ServerConnection, type ServerPools } from './connections/server-connection.js';
import { TakenOverRequests } from './connections/taken-over-requests.js';
import { closeFactories } from './filters/close-factories.js';
import type { TerminalFilterFactory } from './filters/filter.js';
import { h1Server } from './h1/protocol.js';
import { h2Server } from './h2/protocol.js';
import type {
  ConnectionManagerOptions,
  ConnectionManagerStats,
  HttpThread,
  ManagerContext,
} from './manager-context.js';
import { StepPool } from './step-pool.js';
import { ServerStream } from './streams/server-stream.js';

export class ConnectionManager implements TerminalNetworkFilter, ManagerContext {
  readonly thread: HttpThread;
  readonly options: ConnectionManagerOptions;
  readonly stats: ConnectionManagerStats;
  readonly shortestTimeoutMs: number;
  readonly headTimeout: HeadTimeout | undefined;
  readonly lateFlush: number;
  readonly lateClose: number;
  /** Each pool grows to about the largest number of requests that were active at once. */
  readonly #pools: ServerPools;

  constructor(thread: HttpThread, options: ConnectionManagerOptions, stats: ConnectionManagerStats) {
    this.thread = thread;
    this.options = options;
    this.stats = stats;
    const { streamIdleMs, maxStreamMs, requestMs, requestHeadersMs, idleMs, maxConnectionMs } = options;
    const all = [streamIdleMs, maxStreamMs, requestMs, requestHeadersMs, idleMs, maxConnectionMs];
    const timeouts = all.filter((ms) => ms > 0);
    this.shortestTimeoutMs = Math.min(...timeouts);
    this.headTimeout = firstHeadTimeout(options);
    const { memory, transport } = thread;
    const countLate = () => stats.http.increment(HttpStats.at.downstream_cx_delayed_close_timeout);
    this.lateFlush = transport.addLateHandler((isSent) => {
      if (!isSent) countLate();
    });
    this.lateClose = transport.addLateHandler(countLate);
    this.#pools = {
      streams: new StepPool(memory, () => new ServerStream(this)),
      http1: options.codecType === 'HTTP2' ? undefined : h1Server(memory, options.http1),
      http2: options.codecType === 'HTTP1' ? undefined : h2Server(memory, options.http2, stats.http2),
    };
  }

  accept(connection: DownstreamConnection): DownstreamHandler {
    return new ServerConnection(this, this.#pools, connection);
  }

  *prepareRoutes(config: RouteConfiguration): Generator<void, () => void> {
    const steps = this.options.routes.prepare?.(config);
    return steps === undefined ? () => {} : yield* steps;
  }

  close(): void {
    // Delayed closes outlive this manager, and its stats slots may be reused by then.
    this.thread.transport.removeLateHandler(this.lateFlush);
    this.thread.transport.removeLateHandler(this.lateClose);
    closeParts(this.options, this.thread.transport);
  }

  /**
   * Takes over a connection from another chain. From its next request on, this chain's routes, filters and timeouts apply, as on a new
   * connection.
   */
  prepareTakeOver({ facts, input, sockets }: HandedOverConnection, isClientBlocked: boolean): FilterTakeOver | string {
    const takenOver = TakenOverRequests.from(facts.progress, isClientBlocked);
    if (sockets.length !== 1 || takenOver === undefined || this.#pools.http1 === undefined)
      return 'it is not an HTTP connection';
    let handler: ServerConnection | undefined;
    return {
      pausesClient: false,
      begin: (connection) => {
        handler = new ServerConnection(this, this.#pools, connection, takenOver);
        return handler;
      },
      begun: () => handler?.processInput(input),
      drop: () => {},
    };
  }
}

/** Closes the access loggers, the tracing and the filter factories of a chain. An error in one of them does not prevent the others from closing. */
export function closeParts(
  {
    accessLogs,
    filters,
    terminal,
    tracing,
  }: Pick<ConnectionManagerOptions, 'accessLogs' | 'filters' | 'tracing'> & {
    readonly terminal?: TerminalFilterFactory | undefined;
  },
  transport: Pick<Transport, 'report'>,
): void {
  for (const log of accessLogs) log.close();
  tracing?.close();
  closeFactories(filters, transport);
  terminal?.close?.();
}
