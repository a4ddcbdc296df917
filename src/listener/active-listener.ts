// A listener on one worker: accepts connections and gives them to the filter chain that is current.

import type { BufferLimits, ConnectionHandler, ListenerHandler, Transport } from '../io/transport.js';
import type { Logger } from '../log/logger.js';
import { ListenerStats } from '../stats/layouts/listener.js';
import type { Scope } from '../stats/thread-stats.js';
import { type ConnectionOwner, DownstreamConnection } from './downstream-connection.js';
import type { FilterChain } from './network-filter.js';

export interface ActiveListenerOptions {
  name: string;
  transport: Transport;
  stats: Scope;
  workerStats: Scope;
  logger: Logger;
  limits: BufferLimits;
  /** Gives each connection of the process a number of its own. */
  nextSerial(): number;
}

export class ActiveListener implements ListenerHandler, ConnectionOwner {
  readonly name: string;
  readonly stats: Scope;
  readonly workerStats: Scope;
  readonly #transport: Transport;
  readonly #logger: Logger;
  readonly #limits: BufferLimits;
  readonly #nextSerial: () => number;
  readonly #connections = new Set<DownstreamConnection>();
  #chain: FilterChain;
  #id = -1;

  constructor(options: ActiveListenerOptions, chain: FilterChain) {
    this.name = options.name;
    this.stats = options.stats;
    this.workerStats = options.workerStats;
    this.#transport = options.transport;
    this.#logger = options.logger;
    this.#limits = options.limits;
    this.#nextSerial = options.nextSerial;
    this.#chain = chain;
  }

  /** New connections get this chain; those that are there keep theirs. */
  replaceChain(chain: FilterChain): void {
    this.#chain = chain;
  }

  /** Accepts on a copy of `fd`; `shared`: the other workers accept on the same socket. */
  listen(fd: number, shared: boolean): void {
    this.#id = this.#transport.addListener(fd, shared, this);
  }

  /** Takes no more connections; with `acceptRest` those that the kernel has queued are still served. */
  stop(acceptRest: boolean): void {
    if (this.#id < 0) return;
    this.#transport.removeListener(this.#id, acceptRest);
    this.#id = -1;
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  onAccept(id: number, offset: number, length: number): ConnectionHandler | undefined {
    this.#transport.setLimits(id, this.#limits);
    const connection = new DownstreamConnection(this.#transport, id, this, this.#nextSerial(), offset, length);
    this.#connections.add(connection);
    try {
      return this.#chain.terminal.accept(connection);
    } catch (error) {
      connection.reset();
      throw error;
    }
  }

  onAcceptFailed(errno: number): void {
    this.stats.increment(ListenerStats.at.downstream_cx_overflow);
    this.#logger.warning(
      `listener '${this.name}': accept failed (errno ${errno}); accepting again as soon as it is possible`,
    );
  }

  /** Called by the connection when it has ended. */
  connectionEnded(connection: DownstreamConnection): void {
    this.#connections.delete(connection);
  }
}
