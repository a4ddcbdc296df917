// The HTTP connection manager of one filter chain on one worker: it takes accepted connections.

import type { ConnectionHandler } from '../io/transport.js';
import type { DownstreamConnection } from '../listener/downstream-connection.js';
import type { TerminalNetworkFilter } from '../listener/network-filter.js';
import type {
  ConnectionManagerOptions,
  ConnectionManagerStats,
  HttpThread,
  ManagerContext,
} from './manager-context.js';
import { ServerConnection } from './server-connection.js';
import { ServerStream } from './server-stream.js';
import { TurnPool } from './turn-pool.js';

export class ConnectionManager implements TerminalNetworkFilter, ManagerContext {
  readonly thread: HttpThread;
  readonly options: ConnectionManagerOptions;
  readonly stats: ConnectionManagerStats;
  readonly shortestTimeoutMs: number;
  /** Streams are used again: there are about as many as requests that were ever busy at the same time. */
  readonly #streams: TurnPool<ServerStream>;

  constructor(thread: HttpThread, options: ConnectionManagerOptions, stats: ConnectionManagerStats) {
    this.thread = thread;
    this.options = options;
    this.stats = stats;
    const { streamIdleMs, requestMs, requestHeadersMs, idleMs, maxConnectionMs } = options;
    const timeouts = [streamIdleMs, requestMs, requestHeadersMs, idleMs, maxConnectionMs].filter((ms) => ms > 0);
    this.shortestTimeoutMs = timeouts.length === 0 ? 0 : Math.min(...timeouts);
    this.#streams = new TurnPool(thread.memory, () => new ServerStream(this));
  }

  accept(connection: DownstreamConnection): ConnectionHandler {
    return new ServerConnection(this, this.#streams, connection);
  }
}
