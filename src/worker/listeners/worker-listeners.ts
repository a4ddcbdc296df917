// The listeners of one worker: versions built from snapshots, by id.

import type { PassedValues } from '../../access-log/stream/passed-values.js';
import { messageOf } from '../../common/errors/errors.js';
import { shownName } from '../../common/text/shown.js';
import { bufferLimitBytes } from '../../config/fields/buffer-limit.js';
import { CONNECTION_MONITOR } from '../../config/fields/connection-monitor.js';
import { isUdp } from '../../config/fields/udp.js';
import type { Listener } from '../../config/generated/api.js';
import type { WorkerContext } from '../../extensions/factories.js';
import { createAccessLoggers } from '../../extensions/registry.js';
import { addressOfText, internalNameOf } from '../../io/addresses/address.js';
import { bufferLimits } from '../../io/transport/buffer-limits.js';
import { AcceptFailures } from '../../listener/accept-failures.js';
import { ActiveListener } from '../../listener/active-listener.js';
import { ConnectionLimit, GLOBAL_CONNECTION_LIMIT, UNLIMITED } from '../../listener/connection-limit.js';
import { ConnectionLog } from '../../listener/connection-log.js';
import type { DrainWindow } from '../../listener/drain-window.js';
import type { HandedOverConnection, HandOverQueue, PreparedTakeOver } from '../../listener/hand-over.js';
import type { FilterChain, FilterChainFinder } from '../../listener/network-filter.js';
import type { OpenConnections } from '../../listener/open-connections.js';
import { UdpListener } from '../../listener/udp/udp-listener.js';
import type { WorkerListener } from '../../listener/worker-listener.js';
import { forEachGuarded } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import type { OverloadChange } from '../../runtime/overload/thread-overload.js';
import { ListenerStats, ListenerWorkerStats } from '../../stats/layouts/listener.js';
import { overloadPrefix, ResourceStats } from '../../stats/layouts/overload.js';
import type { InternalListeners } from '../../upstream/internal-connections.js';
import { ListenerWord } from '../../upstream/shared-words.js';
import type {
  InlineRoutesSnapshot,
  ListenerSnapshot,
  Snapshot,
  WorkerConnections,
  WorkerSockets,
  WorkerStart,
} from '../messages/messages.js';
import { ChainBuilder, finderOf } from './chain-builder.js';
import { IdleHosts } from './idle-hosts.js';
import { inspectionOf } from './inspection.js';
import { addressOfListener, ListenerDestinations } from './listener-destinations.js';
import { createUdpListener } from './udp.js';
import { UnbuiltListeners } from './unbuilt-listeners.js';

const logger = getLogger('config');

/** Retry delay for adding sockets after descriptors were exhausted. */
const RETRY_MS = 500;

/** The part of WorkerStart for listeners. */
type ListenersStart = Pick<WorkerStart, 'index' | 'listenersBlock' | 'maxConnections' | 'workers'>;

export class WorkerListeners implements InternalListeners {
  readonly #context: WorkerContext;
  readonly #workerIndex: number;
  readonly #workers: number;
  readonly #globalLimit: ConnectionLimit;
  /** The global limit is that of the overload manager. */
  readonly #isLimitMonitored: boolean;
  readonly #nextSerial: () => number;
  readonly #acceptFailures: AcceptFailures;
  readonly #listeners = new Map<number, WorkerListener>();
  /** For connections that listeners with use_original_dst pass on, and those to internal listeners. */
  readonly #destinations = new ListenerDestinations(() => this.#listeners.values());
  readonly #builder: ChainBuilder;
  #handOverQueue: HandOverQueue | undefined;
  /** Sockets that will be added when descriptors are available. */
  readonly #lateSockets = new Map<WorkerSockets, NodeJS.Timeout>();
  readonly #unbuilt = new UnbuiltListeners((snapshot) => {
    this.#context.transport.beginTurn();
    this.apply(snapshot);
  });

  constructor(context: WorkerContext, { index, listenersBlock, maxConnections, workers }: ListenersStart) {
    this.#context = context;
    this.#builder = new ChainBuilder(context, (listener, chain) => this.#listeners.get(listener)?.chain(chain));
    context.transport.onLost = (id) => {
      for (const listener of this.#listeners.values()) listener.lost(id);
    };
    const idleHosts = new IdleHosts(context);
    this.#acceptFailures = new AcceptFailures(logger, context.clock, () => idleHosts.makeRoom());
    this.#isLimitMonitored = maxConnections !== undefined;
    this.#globalLimit =
      maxConnections === undefined
        ? this.#limit(listenersBlock, GLOBAL_CONNECTION_LIMIT)
        : this.#monitored(listenersBlock, maxConnections);
    this.#workerIndex = index;
    this.#workers = workers;
    if (context.internal !== undefined) context.internal.listeners = this;
    const { serials } = context.transport;
    serials.begin(index, workers);
    this.#nextSerial = () => serials.next();
  }

  /**
   * Adds a version of a listener, or sets new filter chains of the one with that id. Connections keep their chain. Throws when a
   * chain cannot be built or descriptors are exhausted, with nothing changed.
   */
  apply(snapshot: ListenerSnapshot): void {
    const existing = this.#listeners.get(snapshot.id);
    const built: FilterChain[] = [];
    try {
      const chains = snapshot.chains.map((chain) => {
        const known = existing?.chain(chain.id);
        if (known === undefined) built.push(this.#builder.chain(snapshot, chain));
        return known ?? built.at(-1)!;
      });
      const finder = finderOf(snapshot.chains, chains);
      if (existing !== undefined) existing.setChains(chains, finder);
      else this.#add(snapshot, chains, finder);
      this.#unbuilt.delete(snapshot.id);
    } catch (error) {
      for (const { terminal } of built) terminal.close?.();
      throw error;
    }
  }

  /** Retries a listener that apply() could not build, while other workers use it. */
  applyLater(snapshot: ListenerSnapshot): void {
    this.#unbuilt.add(snapshot);
  }

  #add(snapshot: ListenerSnapshot, chains: readonly FilterChain[], finder: FilterChainFinder): void {
    const listener = this.#create(snapshot, chains, finder);
    try {
      listener.takeSockets(this.#socketsOf(snapshot), snapshot.isShared);
    } catch (error) {
      // Its filters are its own, and hold logs and resolvers.
      if (listener instanceof UdpListener) listener.remove();
      throw error;
    }
    if (this.#handOverQueue !== undefined) listener.handOver(this.#handOverQueue);
    this.#listeners.set(snapshot.id, listener);
    this.#destinations.changed();
    if (snapshot.isListening) listener.accept();
  }

  /** Builds the slow parts of a snapshot for apply() and applyRoutes(), in steps between which requests are served. */
  prepare(snapshot: Pick<Snapshot, 'inlineRoutes' | 'listeners'>): Generator<void, void> {
    return this.#builder.prepare(snapshot);
  }

  /** Sets routes. Throws when any cannot be built, with nothing changed. */
  applyRoutes(snapshots: readonly InlineRoutesSnapshot[]): void {
    const changes = snapshots.map((snapshot) => this.#builder.routesChange(snapshot));
    for (const change of changes) change();
    for (const snapshot of snapshots) this.#unbuilt.setRoutes(snapshot);
  }

  /** Called when the listener's sockets listen. */
  accept(id: number): void {
    this.#listeners.get(id)?.accept();
    this.#unbuilt.change(id, { isListening: true });
  }

  /** Suspends accepting until accept(). */
  suspend(ids: readonly number[]): void {
    for (const id of ids) {
      this.#listeners.get(id)?.suspend();
      this.#unbuilt.change(id, { isListening: false });
    }
  }

  get suspendedSockets(): number {
    let sum = 0;
    for (const listener of this.#listeners.values()) sum += listener.suspendedSockets;
    return sum;
  }

  /** Adds sockets, for accept(). When descriptors are exhausted, it retries. */
  addSockets(sockets: WorkerSockets): void {
    const { fds, from, id, isShared } = sockets;
    this.#unbuilt.change(id, { fds });
    const listener = this.#listeners.get(id);
    if (listener === undefined) return;
    try {
      const own = fds.filter((_, index) => index >= from && (isShared || this.#isOwn(index)));
      listener.takeSockets(own, isShared);
    } catch (error) {
      logger.warning(
        `listener '${shownName(listener.name)}' waits for descriptors to accept on all of its sockets: ${messageOf(error)}`,
      );
      this.#lateSockets.set(
        sockets,
        setTimeout(() => this.#addLateSockets(sockets), RETRY_MS),
      );
    }
  }

  /** Stops accepting; existing connections continue. */
  stop(ids: readonly number[], acceptRest: boolean): void {
    forEachGuarded(ids, 'internal error: a listener was not stopped', (id) => {
      this.#forgetLateSockets(id);
      this.#unbuilt.delete(id);
      this.#listeners.get(id)?.stop(acceptRest);
      this.#destinations.changed();
    });
  }

  #addLateSockets(sockets: WorkerSockets): void {
    this.#lateSockets.delete(sockets);
    this.addSockets(sockets);
    const listener = this.#listeners.get(sockets.id);
    if (listener?.suspendedSockets === 0) listener.accept();
  }

  /** Cancels pending additions, because the primary is about to close the descriptors, whose numbers may be reused. */
  #forgetLateSockets(id: number): void {
    for (const [sockets, timer] of this.#lateSockets) {
      if (sockets.id !== id) continue;
      clearTimeout(timer);
      this.#lateSockets.delete(sockets);
    }
  }

  /** Begins to drain listeners and chains: each asks its connections to end within its window. */
  drain(windows: ReadonlyMap<number, DrainWindow>): void {
    forEachGuarded(windows, 'internal error: a listener does not drain', ([id, window]) => {
      this.#unbuilt.change(id, { drain: window });
      const listener = this.#listeners.get(id);
      if (listener !== undefined) listener.beginDrain(window);
      else for (const each of this.#listeners.values()) each.beginDrain(window, id);
    });
  }

  /** Replaces the drain window of listeners; undefined: they do not drain. */
  changeDrain(windows: ReadonlyMap<number, DrainWindow | undefined>): void {
    for (const [id, window] of windows) {
      this.#listeners.get(id)?.changeDrain(window);
      this.#unbuilt.change(id, { drain: window });
    }
  }

  /** Called when the drain time is over. Closes connections that no response can end. */
  drainEnded(ids: readonly number[]): void {
    const what = 'internal error: the connections of a listener do not end';
    forEachGuarded(ids, what, (id) => this.#listeners.get(id)?.drainEnded());
  }

  /** Returns the open connections of listeners, and of draining chains. */
  connections(): WorkerConnections['listeners'] {
    const counts = new Map<number, OpenConnections>();
    for (const listener of this.#listeners.values()) listener.countOpen(counts);
    return counts;
  }

  /** Removes versions of listeners, or filter chains, and closes their connections. */
  remove(ids: readonly number[]): void {
    forEachGuarded(ids, 'internal error: a listener was not removed', (id) => {
      this.#forgetLateSockets(id);
      this.#unbuilt.delete(id);
      const listener = this.#listeners.get(id);
      try {
        if (listener !== undefined) listener.remove();
        else for (const each of this.#listeners.values()) each.removeChain(id);
      } finally {
        this.#listeners.delete(id);
        this.#destinations.changed();
      }
    });
  }

  /** Called when the thread ends. Closes all connections. */
  end(): void {
    this.#unbuilt.close();
    this.remove([...this.#listeners.keys()]);
  }

  /** Called before the thread dies of `error`. */
  abandon(error: unknown): void {
    for (const listener of this.#listeners.values()) listener.abandon(error);
  }

  /** Called when runtime values have changed. */
  runtimeChanged(): void {
    this.#globalLimit.update();
    const what = 'internal error: a listener does not follow the runtime';
    forEachGuarded(this.#listeners.values(), what, (listener) => listener.runtimeChanged());
  }

  /** Called when the overload manager has changed the state of actions. */
  overloadChanged(change: OverloadChange): void {
    if (!change.togglesAccepting && !change.shortensTimeouts) return;
    const what = 'internal error: a listener does not follow the overload manager';
    forEachGuarded(this.#listeners.values(), what, (listener) => listener.overloadChanged(change));
  }

  /** Returns the sockets on which this worker accepts. */
  #socketsOf({ fds, isShared }: ListenerSnapshot): readonly number[] {
    return isShared ? fds : fds.filter((_, index) => this.#isOwn(index));
  }

  /** Returns whether this worker accepts on the socket with that number when sockets are divided among workers. */
  #isOwn(index: number): boolean {
    return index % this.#workers === this.#workerIndex;
  }

  #create(snapshot: ListenerSnapshot, chains: readonly FilterChain[], finder: FilterChainFinder): WorkerListener {
    const { block, config, id, name, statToken } = snapshot;
    if (isUdp(config)) return createUdpListener(snapshot, this.#context);
    const prefix = `listener.${statToken}.`;
    return new ActiveListener(
      {
        id,
        name,
        address: addressOfListener(config),
        transport: this.#context.transport,
        stats: this.#context.scope(prefix, ListenerStats),
        workerStats: this.#context.scope(`${prefix}worker_${this.#workerIndex}.`, ListenerWorkerStats),
        acceptFailures: this.#acceptFailures,
        limits: bufferLimits(bufferLimitBytes(config.per_connection_buffer_limit_bytes)),
        connectionLimit: this.#limit(block, `envoy.resource_limits.listener.${name}.connection_limit`),
        globalLimit: this.#globalLimitOf(config),
        maxAccepted: config.max_connections_to_accept_per_socket_event ?? 0,
        overload: config.bypass_overload_manager ? undefined : this.#context.overload,
        nextSerial: this.#nextSerial,
        inspection: inspectionOf(config, this.#context),
        log: this.#logOf(config),
        isInternal: config.internal_listener !== undefined,
        listenerAt: config.use_original_dst ? (destination) => this.#destinations.listenerAt(destination) : undefined,
      },
      chains,
      finder,
    );
  }

  #logOf({ access_log: configs = [] }: Listener): ConnectionLog | undefined {
    if (configs.length === 0) return undefined;
    return new ConnectionLog(createAccessLoggers(configs, 'NotSet', this.#context), this.#context.clock);
  }

  #globalLimitOf(config: Listener): ConnectionLimit | undefined {
    const isInternal = config.internal_listener !== undefined;
    const isBypassing = this.#isLimitMonitored && config.bypass_overload_manager;
    const isExempt = isInternal || config.ignore_global_conn_limit || isBypassing;
    return isExempt ? undefined : this.#globalLimit;
  }

  #limit(block: number, key: string): ConnectionLimit {
    const { runtime, words } = this.#context;
    return new ConnectionLimit(words, block + ListenerWord.Connections, runtime.integer(key, UNLIMITED));
  }

  /** Returns the limit of the overload manager's monitor, with its stats. */
  #monitored(block: number, limit: number): ConnectionLimit {
    const { runtime, words } = this.#context;
    const stats = this.#context.scope(overloadPrefix(CONNECTION_MONITOR), ResourceStats);
    return new ConnectionLimit(words, block + ListenerWord.Connections, runtime.integer(undefined, limit), () =>
      stats.increment(ResourceStats.at.failed_updates),
    );
  }

  /** Hands existing and new connections over to another process; undefined: stops that, and they drain. */
  handOver(handOverQueue: HandOverQueue | undefined): void {
    this.#handOverQueue = handOverQueue;
    for (const listener of this.#listeners.values()) listener.handOver(handOverQueue);
  }

  /** Called in a turn of its own. */
  acceptWithin(fd: number, address: string, passed: PassedValues | undefined): boolean {
    const listener = this.#destinations.internalListener(internalNameOf(address));
    listener?.acceptWithin(fd, { local: addressOfText(address), passed });
    return listener !== undefined;
  }

  /** Prepares to take over a connection from another process. Returns a string with the reason if that is not possible. */
  prepareTakeOver(handedOver: HandedOverConnection): PreparedTakeOver | string {
    const { listener: name } = handedOver.facts;
    // The latest version.
    const listener = [...this.#listeners.values()].findLast((each) => each.name === name);
    return listener?.prepareTakeOver(handedOver) ?? `there is no listener '${name}'`;
  }
}
