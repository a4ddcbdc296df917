// A version of a listener on one worker: accepts connections and passes them to the matching filter chain.

import { constants } from 'node:os';
import { type Address, addressText, decodeSockaddr, INTERNAL_PEER } from '../io/addresses/address.js';
import type { BufferLimits } from '../io/transport/buffer-limits.js';
import type { ConnectionHandler, ListenerHandler } from '../io/transport/connection-handler.js';
import type { Transport } from '../io/transport/transport.js';
import type { OverloadChange, ThreadOverload } from '../runtime/overload/thread-overload.js';
import { ListenerStats } from '../stats/layouts/listener.js';
import type { Scope } from '../stats/thread-stats.js';
import type { AcceptFailures } from './accept-failures.js';
import { AcceptedSocket } from './accepted-socket.js';
import type { ConnectionLimit } from './connection-limit.js';
import { ConnectionList } from './connection-list.js';
import type { ConnectionLog } from './connection-log.js';
import { type ConnectionOwner, DownstreamConnection } from './downstream-connection.js';
import type { DrainWindow } from './drain-window.js';
import type { HandedOverConnection, HandOverQueue, PreparedTakeOver } from './hand-over.js';
import type { InspectedSocket, InternalOrigin } from './inspected-socket.js';
import { type InspectionEvents, type InspectionSettings, Inspections } from './inspections.js';
import type { FilterChain, FilterChainFinder, FilterTakeOver } from './network-filter.js';
import { OpenConnections } from './open-connections.js';
import { SecuringConnection } from './securing.js';
import type { WorkerListener } from './worker-listener.js';

export interface ActiveListenerOptions {
  id: number;
  name: string;
  /** Its configured address; undefined: it has none, or the kernel chooses the port. */
  address?: Address | undefined;
  transport: Transport;
  stats: Scope;
  workerStats: Scope;
  acceptFailures: AcceptFailures;
  limits: BufferLimits;
  /** The limit of this listener's connections on all workers together. */
  connectionLimit: ConnectionLimit;
  /** The limit of all listeners together; undefined if this listener is exempt. */
  globalLimit: ConnectionLimit | undefined;
  /** How many connections a socket accepts before others are served; 0: as many as suit the transport. */
  maxAccepted?: number;
  /** Undefined: no overload manager applies to it. */
  overload?: ThreadOverload | undefined;
  /** Returns a number that is unique among the connections of the process. */
  nextSerial(): number;
  /** Settings of the listener filters; undefined if there are none. */
  inspection: InspectionSettings | undefined;
  /** The access log, which the listener closes; undefined: it has none. */
  log?: ConnectionLog | undefined;
  /**
   * Returns the listener at the original destination of a connection, which serves it; undefined: there is none. Absent: without
   * use_original_dst.
   */
  listenerAt?: ((destination: Address) => ActiveListener | undefined) | undefined;
  /** It has no sockets: acceptWithin() gives it connections. `inspection` is set. */
  isInternal?: boolean;
}

export class ActiveListener implements WorkerListener, ListenerHandler, ConnectionOwner, InspectionEvents {
  /** Unique in the process. */
  readonly id: number;
  readonly name: string;
  readonly address: Address | undefined;
  readonly stats: Scope;
  readonly workerStats: Scope;
  readonly log: ConnectionLog | undefined;
  readonly #transport: Transport;
  readonly #acceptFailures: AcceptFailures;
  readonly #limits: BufferLimits;
  readonly #connectionLimit: ConnectionLimit;
  readonly #globalLimit: ConnectionLimit | undefined;
  readonly #maxAccepted: number;
  readonly #overload: ThreadOverload | undefined;
  readonly #nextSerial: () => number;
  readonly #connections = new ConnectionList<DownstreamConnection>();
  readonly #accepted: AcceptedSocket;
  readonly #inspections: Inspections | undefined;
  readonly #listenerAt: ActiveListenerOptions['listenerAt'];
  readonly #isInternal: boolean;
  /** Chains for new connections, by ID. */
  #chains: ReadonlyMap<number, FilterChain> = new Map();
  #finder: FilterChainFinder;
  /** Removed chains that only keep their connections, by ID. */
  readonly #formerChains = new Map<number, FilterChain>();
  #handOverQueue: HandOverQueue | undefined;
  /** IDs of its sockets in the transport. */
  readonly #ids: number[] = [];
  #isAccepting = false;
  #isStopped = false;
  #acceptedInBatch = 0;

  constructor(options: ActiveListenerOptions, chains: readonly FilterChain[], finder: FilterChainFinder) {
    this.id = options.id;
    this.name = options.name;
    this.address = options.address;
    this.stats = options.stats;
    this.workerStats = options.workerStats;
    this.log = options.log;
    this.#transport = options.transport;
    this.#acceptFailures = options.acceptFailures;
    this.#limits = options.limits;
    this.#connectionLimit = options.connectionLimit;
    this.#globalLimit = options.globalLimit;
    this.#maxAccepted = options.maxAccepted ?? 0;
    this.#overload = options.overload;
    this.#nextSerial = options.nextSerial;
    this.#accepted = new AcceptedSocket(options.transport);
    this.#listenerAt = options.listenerAt;
    this.#isInternal = options.isInternal ?? false;
    const { inspection } = options;
    this.#inspections = inspection && new Inspections(inspection, options.transport, options.stats, this);
    this.#finder = finder;
    this.setChains(chains, finder);
  }

  /** Sets the chains for new connections. Open connections keep their chains until removeChain(). */
  setChains(chains: readonly FilterChain[], finder: FilterChainFinder): void {
    const former = this.#chains;
    this.#chains = new Map(chains.map((chain) => [chain.id, chain]));
    this.#finder = finder;
    for (const [id, chain] of former) if (!this.#chains.has(id)) this.#formerChains.set(id, chain);
    for (const id of this.#chains.keys()) this.#formerChains.delete(id);
    for (const chain of chains) setHandOverQueue(chain, this.#handOverQueue);
  }

  /** Returns a chain, current or former. */
  chain(id: number): FilterChain | undefined {
    return this.#chains.get(id) ?? this.#formerChains.get(id);
  }

  /** Removes a former chain and ends its connections. */
  removeChain(id: number): void {
    const chain = this.#formerChains.get(id);
    if (chain === undefined) return;
    this.#formerChains.delete(id);
    this.#end((connection) => connection.chain.id === id);
    chain.terminal.close?.();
  }

  /** Removes the listener and ends its connections. */
  remove(): void {
    this.stop(false);
    this.#inspections?.close();
    this.#end(() => true);
    for (const { terminal } of this.#allChains()) terminal.close?.();
    this.log?.close();
  }

  /** Drains the connections of all chains, or of the chain with this ID. */
  beginDrain(window: DrainWindow, chainId?: number): void {
    for (const chain of this.#allChains()) {
      if (chainId === undefined || chain.id === chainId) chain.drain.begin(window);
    }
  }

  /** Replaces the drain window of the listener; undefined: it does not drain. Former chains keep theirs. */
  changeDrain(window: DrainWindow | undefined): void {
    for (const chain of this.#chains.values()) chain.drain.window = window;
  }

  /**
   * Copies these descriptors for accept(). `shared`: the other workers accept on the same sockets. Throws without descriptors
   * left, and then keeps none.
   */
  takeSockets(fds: readonly number[], shared: boolean): void {
    const ids: number[] = [];
    try {
      for (const fd of fds) ids.push(this.#transport.addListener(fd, shared, this, this.#maxAccepted));
    } catch (error) {
      for (const id of ids) this.#transport.removeListener(id, false);
      throw error;
    }
    this.#ids.push(...ids);
  }

  /** Starts or resumes accepting. */
  accept(): void {
    this.#isAccepting = true;
    if (this.#overload?.isAcceptingStopped) return;
    for (const id of this.#ids) this.#transport.accept(id);
  }

  /** Stops accepting until accept(). */
  suspend(): void {
    this.#isAccepting = false;
    for (const id of this.#ids) this.#transport.suspend(id);
  }

  /** It serves new connections, also without a socket of its own. */
  get isServing(): boolean {
    return !this.#isStopped;
  }

  /** The number of its sockets while it does not accept, otherwise 0. */
  get suspendedSockets(): number {
    return this.#isAccepting ? 0 : this.#ids.length;
  }

  /** Stops accepting for good and closes its sockets. With `acceptRest`, connections in the backlog are still served. */
  stop(acceptRest: boolean): void {
    this.#isStopped = true;
    // A socket that does not listen yet has no backlog.
    for (const id of this.#ids.splice(0)) this.#transport.removeListener(id, acceptRest && this.#isAccepting);
  }

  /** Counts what is open, of the listener and of each former chain. */
  countOpen(counts: Map<number, OpenConnections>): void {
    const sum = new OpenConnections(this.#isInternal);
    counts.set(this.id, sum);
    for (const id of this.#formerChains.keys()) counts.set(id, new OpenConnections(this.#isInternal));
    sum.connections += this.#inspections?.count ?? 0;
    for (const connection of this.#connections) {
      sum.add(connection);
      counts.get(connection.chain.id)?.add(connection);
    }
  }

  /** Called at the end of the drain time: ends connections that no response can end. */
  drainEnded(): void {
    this.#forEach(({ handler }) => handler?.onDrainEnd?.());
  }

  /**
   * Called before the thread ends because of `error`: resets its connections, so that truncated responses do not look complete,
   * and logs them.
   */
  abandon(error: unknown): void {
    for (const { handler } of [...this.#connections]) {
      try {
        handler?.onFault(error);
      } catch {
        // The cause is already reported, and the other connections must still be ended.
      }
    }
  }

  /** Called when a connection was reset without its handler. */
  lost(id: number): void {
    for (const connection of this.#connections) if (connection.id === id) return connection.reset();
  }

  /** Starts moving its connections to another process; undefined: stops that, and they drain. */
  handOver(handOverQueue: HandOverQueue | undefined): void {
    // The other ends of its connections are in this process.
    if (this.#isInternal) return;
    this.#handOverQueue = handOverQueue;
    for (const chain of this.#allChains()) setHandOverQueue(chain, handOverQueue);
    if (handOverQueue === undefined) return;
    for (const connection of [...this.#connections]) {
      // An earlier process has refused it or is dead; another one may take it over.
      connection.hasHandOverFailed = false;
      handOverQueue.add(connection);
    }
  }

  /**
   * Prepares to take over a connection from another process, with copies of its descriptors. Returns a string with the reason if
   * that is not possible.
   */
  prepareTakeOver(handedOver: HandedOverConnection): PreparedTakeOver | string {
    const { fingerprint } = handedOver.facts;
    const chain = [...this.#chains.values()].find((each) => each.fingerprint() === fingerprint);
    if (chain === undefined) return `the filter chain of listener '${this.name}' has changed`;
    const [client] = handedOver.sockets;
    if (client === undefined) return 'it has no socket';
    const isBlocked = client.pending.length > this.#limits.highWatermark;
    const expected = chain.terminal.prepareTakeOver?.(handedOver, isBlocked) ?? 'its filters cannot resume connections';
    if (typeof expected === 'string') return expected;
    if (!this.#mayAccept()) {
      expected.drop();
      return `listener '${this.name}' has reached its connection limit`;
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
      begin: () => this.#begin(id, chain, handedOver, expected),
      drop: () => {
        this.#transport.releaseFrozen(id);
        this.#releaseLimits();
        expected.drop();
      },
    };
  }

  #begin(id: number, chain: FilterChain, { facts }: HandedOverConnection, expected: FilterTakeOver): void {
    const connection = new DownstreamConnection(this.#transport, id, this, chain, this.#nextSerial(), facts, false);
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
    // This process may be about to be replaced as well.
    this.#handOverQueue?.add(connection);
  }

  onAccept(id: number, offset: number, length: number): ConnectionHandler | undefined {
    if (this.#inspections !== undefined) return this.#inspect(this.#inspections, id, offset, length);
    const chain = this.#finder.only ?? this.#finder.find(this.#accepted.begin(id, offset, length));
    if (chain === undefined || this.#rejects() || !this.#mayAccept()) {
      if (chain === undefined) {
        this.stats.increment(ListenerStats.at.no_filter_chain_match);
        this.log?.unmatched(this.#accepted);
      }
      this.#transport.close(id, 0, 0);
      return undefined;
    }
    this.#acceptedInBatch++;
    return this.#serve(
      new chain.Connection(this.#transport, id, this, chain, this.#nextSerial(), { offset, length }),
      chain,
    );
  }

  /** It is an internal listener: it has no sockets, and gets its connections from this thread. */
  get isInternal(): boolean {
    return this.#isInternal;
  }

  /** Serves one end of a connection within this thread, and owns the descriptor. */
  acceptWithin(fd: number, origin: InternalOrigin): void {
    // As in Envoy, the overload manager regards only connections that come from outside.
    if (!this.#mayAccept()) return this.#transport.within.closeGiven(fd);
    let id: number;
    try {
      id = this.#transport.within.adopt(fd, this.#limits);
    } catch (error) {
      // Usually descriptors are short: each connection of clients would bring a line.
      this.#releaseLimits();
      return this.onAcceptFailed(constants.errno[(error as { code?: keyof typeof constants.errno }).code!] ?? 0);
    }
    try {
      const handler = this.#inspections!.begin(id, INTERNAL_PEER, undefined, origin);
      if (handler !== undefined) this.#transport.setHandler(id, handler);
    } catch (error) {
      this.#transport.reset(id);
      throw error;
    }
  }

  /** Passes the socket to the listener filters first. */
  #inspect(inspections: Inspections, id: number, offset: number, length: number): ConnectionHandler | undefined {
    if (this.#rejects() || !this.#mayAccept()) {
      this.#transport.close(id, 0, 0);
      return undefined;
    }
    this.#acceptedInBatch++;
    return inspections.begin(id, decodeSockaddr(this.#transport.memory.bytes, offset, length));
  }

  onInspected(socket: InspectedSocket): ConnectionHandler | undefined {
    // As in Envoy, a connection is passed on once: the client may determine its destination, with the PROXY protocol.
    const isPassable = socket.isLocalRestored && !socket.isPassedOn;
    const other = isPassable ? this.#listenerAt?.(socket.local) : undefined;
    if (other === undefined || other === this) return this.#serveInspected(socket);
    this.#releaseLimits();
    return other.receive(socket);
  }

  /** Takes over a socket that was directed to this listener's address, and redirected to another listener. */
  receive(socket: InspectedSocket): ConnectionHandler | undefined {
    if (!this.#mayAccept()) {
      this.#transport.close(socket.id, 0, 0);
      return undefined;
    }
    if (this.#inspections === undefined) return this.#serveInspected(socket);
    return this.#inspections.begin(socket.id, socket.direct, socket);
  }

  #serveInspected(socket: InspectedSocket): ConnectionHandler | undefined {
    const chain = this.#finder.only ?? this.#finder.find(socket);
    if (chain === undefined) {
      this.stats.increment(ListenerStats.at.no_filter_chain_match);
      this.log?.unmatched(socket, socket.startMonotonicMs);
      this.#transport.close(socket.id, 0, 0);
      this.#releaseLimits();
      return undefined;
    }
    const { detected, isLocalRestored, localText: local, origin, remote, startMonotonicMs } = socket;
    const direct = socket.direct === remote && !isLocalRestored ? undefined : socket.direct;
    const directLocal = origin && addressText(origin.local);
    const known = {
      remote,
      direct,
      local,
      isLocalRestored,
      startMonotonicMs,
      detected,
      directLocal,
      passed: origin?.passed,
    };
    return this.#serve(new chain.Connection(this.#transport, socket.id, this, chain, this.#nextSerial(), known), chain);
  }

  onDropped(socket: InspectedSocket): void {
    this.log?.dropped(socket, socket.startMonotonicMs);
    this.#releaseLimits();
  }

  /** Starts serving a connection that has been counted in the limits. */
  #serve(connection: DownstreamConnection, chain: FilterChain): ConnectionHandler | undefined {
    this.#transport.setLimits(connection.id, this.#limits);
    this.#connections.add(connection);
    try {
      connection.handler = chain.terminal.accept(connection);
      // A no-op if it is closed; otherwise nothing else would ever close it.
      if (connection.handler === undefined) connection.close(0);
      const { tls } = chain;
      return tls === undefined || connection.handler === undefined
        ? connection.handler
        : SecuringConnection.begin(connection, connection.handler, tls);
    } catch (error) {
      connection.reset();
      throw error;
    }
  }

  /** Called when limits in runtime may have changed. */
  runtimeChanged(): void {
    this.#connectionLimit.update();
  }

  overloadChanged({ shortensTimeouts, togglesAccepting }: OverloadChange): void {
    if (this.#overload === undefined) return;
    if (togglesAccepting && this.#isAccepting) {
      const { isAcceptingStopped } = this.#overload;
      for (const id of this.#ids) {
        if (isAcceptingStopped) this.#transport.suspend(id);
        else this.#transport.accept(id);
      }
    }
    if (shortensTimeouts) this.#forEach(({ handler }) => handler?.onTimeoutsChanged?.());
  }

  onAcceptFailed(errno: number): void {
    this.stats.increment(ListenerStats.at.downstream_cx_overflow);
    this.#acceptFailures.report(this.name, errno);
  }

  /** Records how many connections a batch has brought. */
  onAccepted(): void {
    if (this.#acceptedInBatch === 0) return;
    this.stats.record(ListenerStats.at.connections_accepted_per_socket_event, this.#acceptedInBatch);
    this.#acceptedInBatch = 0;
  }

  /** Called by the connection when it has ended. */
  connectionEnded(connection: DownstreamConnection): void {
    this.#connections.remove(connection);
    this.#releaseLimits();
  }

  /** Ends the connections whose listener or chain is removed. */
  #end(isGone: (connection: DownstreamConnection) => boolean): void {
    this.#forEach((connection) => {
      if (isGone(connection)) connection.handler?.onListenerGone();
    });
  }

  /** Ends a connection after an exception, by a reset if its onFault() throws too. */
  #failed(connection: DownstreamConnection, error: unknown): void {
    this.#transport.report(error);
    try {
      connection.handler?.onFault(error);
    } catch (another) {
      this.#transport.report(another);
      connection.reset();
    }
  }

  /** Calls `act` for each connection. An exception ends that connection, as in its own events. */
  #forEach(act: (connection: DownstreamConnection) => void): void {
    for (const connection of [...this.#connections]) {
      try {
        act(connection);
      } catch (error) {
        this.#failed(connection, error);
      }
    }
  }

  *#allChains(): Iterable<FilterChain> {
    yield* this.#chains.values();
    yield* this.#formerChains.values();
  }

  #releaseLimits(): void {
    this.#connectionLimit.release();
    this.#globalLimit?.release();
  }

  /** The overload manager refuses a connection that has just been accepted, which is counted: not one that is passed on or taken over. */
  #rejects(): boolean {
    if (this.#overload?.rejectsConnection() !== true) return false;
    this.stats.increment(ListenerStats.at.downstream_cx_overload_reject);
    return true;
  }

  /** Acquires both limits, or counts which one is reached and returns false. */
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

/** Connections whose filters could not resume them in another process must not stop for it: they drain. */
function setHandOverQueue({ drain, terminal }: FilterChain, handOverQueue: HandOverQueue | undefined): void {
  if (terminal.prepareTakeOver !== undefined) drain.handOverQueue = handOverQueue;
}
