// A listener on one worker: accepts connections and gives them to the filter chain that is current.

import type { BufferLimits, ConnectionHandler, ListenerHandler, Transport } from '../io/transport.js';
import type { Logger } from '../log/logger.js';
import { ListenerStats } from '../stats/layouts/listener.js';
import type { Scope } from '../stats/thread-stats.js';
import type { ConnectionLimit } from './connection-limit.js';
import { type ConnectionOwner, DownstreamConnection } from './downstream-connection.js';
import type { ListenerDrain } from './listener-drain.js';
import type { FilterArrival, FilterChain } from './network-filter.js';
import type { Arrival, Cargo, Departures } from './travel.js';

export interface ActiveListenerOptions {
  name: string;
  transport: Transport;
  stats: Scope;
  workerStats: Scope;
  logger: Logger;
  limits: BufferLimits;
  /** On connections of this listener, on all workers together. */
  connectionLimit: ConnectionLimit;
  /** The same of all listeners together; undefined: it does not concern this one. */
  globalLimit: ConnectionLimit | undefined;
  drain: ListenerDrain;
  /** Gives each connection of the process a number of its own. */
  nextSerial(): number;
}

export class ActiveListener implements ListenerHandler, ConnectionOwner {
  readonly name: string;
  readonly stats: Scope;
  readonly workerStats: Scope;
  readonly drain: ListenerDrain;
  readonly #transport: Transport;
  readonly #logger: Logger;
  readonly #limits: BufferLimits;
  readonly #connectionLimit: ConnectionLimit;
  readonly #globalLimit: ConnectionLimit | undefined;
  readonly #nextSerial: () => number;
  readonly #connections = new Set<DownstreamConnection>();
  #chain: FilterChain;
  readonly #ids: number[] = [];
  #acceptedInTurn = 0;

  constructor(options: ActiveListenerOptions, chain: FilterChain) {
    this.name = options.name;
    this.stats = options.stats;
    this.workerStats = options.workerStats;
    this.drain = options.drain;
    this.#transport = options.transport;
    this.#logger = options.logger;
    this.#limits = options.limits;
    this.#connectionLimit = options.connectionLimit;
    this.#globalLimit = options.globalLimit;
    this.#nextSerial = options.nextSerial;
    this.#chain = chain;
  }

  /** New connections get this chain; those that are there keep theirs. */
  replaceChain(chain: FilterChain): void {
    this.#chain = chain;
  }

  /** Accepts on copies of these descriptors too; `shared`: the other workers accept on the same sockets. */
  listen(fds: readonly number[], shared: boolean): void {
    for (const fd of fds) this.#ids.push(this.#transport.addListener(fd, shared, this));
  }

  /** Takes no more connections; with `acceptRest` those that the kernel has queued are still served. */
  stop(acceptRest: boolean): void {
    for (const id of this.#ids.splice(0)) this.#transport.removeListener(id, acceptRest);
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Requests that its connections are serving. */
  get requestCount(): number {
    let count = 0;
    for (const connection of this.#connections) count += connection.handler?.activeRequests ?? 0;
    return count;
  }

  /** The time to drain is over: connections end that cannot be asked to. */
  drainEnded(): void {
    for (const connection of [...this.#connections]) connection.handler?.onDrainEnd?.();
  }

  /** Its connections are to leave for another process; undefined: no longer, and they drain. */
  depart(departures: Departures | undefined): void {
    this.drain.departures = departures;
    if (departures === undefined) return;
    for (const connection of this.#connections) departures.add(connection);
  }

  /**
   * Whether a connection that another process has had can go on here; a text says why not. It goes on with copies of the
   * descriptors.
   */
  expect(cargo: Cargo): Arrival | string {
    const chain = this.#chain;
    if (chain.fingerprint() !== cargo.facts.fingerprint)
      return `the filter chain of listener '${this.name}' has changed`;
    const [client] = cargo.sockets;
    if (client === undefined) return 'it has no socket';
    const isBlocked = client.pending.length > this.#limits.highWatermark;
    const expected = chain.terminal.expect?.(cargo, isBlocked) ?? 'its filters cannot go on with connections';
    if (typeof expected === 'string') return expected;
    if (!this.#mayAccept()) {
      expected.drop();
      return `listener '${this.name}' has as many connections as it may`;
    }
    let id: number;
    try {
      id = this.#transport.adoptFrozen(client, this.#limits, expected.pausesClient);
    } catch (error) {
      expected.drop();
      this.#releaseLimits();
      return error instanceof Error ? error.message : String(error);
    }
    return {
      begin: () => this.#begin(id, chain, cargo, expected),
      drop: () => {
        this.#transport.letGo(id);
        this.#releaseLimits();
        expected.drop();
      },
    };
  }

  #begin(id: number, chain: FilterChain, { facts }: Cargo, expected: FilterArrival): void {
    const connection = new DownstreamConnection(this.#transport, id, this, chain, this.#nextSerial(), facts);
    this.#connections.add(connection);
    try {
      const handler = expected.begin(connection);
      connection.handler = handler;
      this.#transport.setHandler(id, handler);
      this.#transport.thaw(id);
      expected.begun?.();
    } catch (error) {
      connection.reset();
      expected.drop();
      throw error;
    }
    // This process may be about to be replaced too.
    this.drain.departures?.add(connection);
  }

  onAccept(id: number, offset: number, length: number): ConnectionHandler | undefined {
    if (!this.#mayAccept()) {
      this.#transport.close(id, 0, 0);
      return undefined;
    }
    this.#transport.setLimits(id, this.#limits);
    const connection = new DownstreamConnection(this.#transport, id, this, this.#chain, this.#nextSerial(), {
      offset,
      length,
    });
    this.#connections.add(connection);
    if (this.#acceptedInTurn++ === 0) queueMicrotask(this.#endTurn);
    try {
      connection.handler = this.#chain.terminal.accept(connection);
      return connection.handler;
    } catch (error) {
      connection.reset();
      throw error;
    }
  }

  /** Limits of runtime may have changed. */
  runtimeChanged(): void {
    this.#connectionLimit.update();
  }

  onAcceptFailed(errno: number): void {
    this.stats.increment(ListenerStats.at.downstream_cx_overflow);
    this.#logger.warning(
      `listener '${this.name}': accept failed (errno ${errno}); accepting again as soon as it is possible`,
    );
  }

  /** How many connections one turn has brought: a turn accepts what is waiting at a listener. */
  readonly #endTurn = (): void => {
    this.stats.record(ListenerStats.at.connections_accepted_per_socket_event, this.#acceptedInTurn);
    this.#acceptedInTurn = 0;
  };

  /** Called by the connection when it has ended. */
  connectionEnded(connection: DownstreamConnection): void {
    this.#connections.delete(connection);
    this.#releaseLimits();
  }

  #releaseLimits(): void {
    this.#connectionLimit.release();
    this.#globalLimit?.release();
  }

  /** Takes one of each limit, or says which one is reached. */
  #mayAccept(): boolean {
    const { at } = ListenerStats;
    if (this.#globalLimit?.tryAcquire() === false) {
      this.stats.increment(at.downstream_global_cx_overflow);
      return false;
    }
    if (this.#connectionLimit.tryAcquire()) return true;
    this.#globalLimit?.release();
    this.stats.increment(at.downstream_cx_overflow);
    return false;
  }
}
