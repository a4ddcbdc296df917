// The listeners of one worker: versions built from snapshots, kept by id.

import { messageOf } from '../../common/errors/errors.js';
import { shownName } from '../../common/text/shown.js';
import { bufferLimitBytes } from '../../config/fields/buffer-limit.js';
import { CONNECTION_MONITOR } from '../../config/fields/connection-monitor.js';
import type { WorkerContext } from '../../extensions/factories.js';
import { bufferLimits } from '../../io/transport/buffer-limits.js';
import { AcceptFailures } from '../../listener/accept-failures.js';
import { ActiveListener, type OpenConnections } from '../../listener/active-listener.js';
import { ConnectionLimit, GLOBAL_CONNECTION_LIMIT, UNLIMITED } from '../../listener/connection-limit.js';
import type { DrainWindow } from '../../listener/drain-window.js';
import type { FilterChain, FilterChainFinder } from '../../listener/network-filter.js';
import type { Arrival, Cargo, Departures } from '../../listener/travel.js';
import { forEachGuarded } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import { ListenerStats, ListenerWorkerStats } from '../../stats/layouts/listener.js';
import { ResourceStats, resourcePrefix } from '../../stats/layouts/overload.js';
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
import { UnbuiltListeners } from './unbuilt-listeners.js';

const logger = getLogger('config');

/** How soon it is tried again to have sockets, where descriptors are short. */
const RETRY_MS = 500;

/** What the worker begins with, as far as it is about listeners. */
type ListenersStart = Pick<WorkerStart, 'index' | 'listenersBlock' | 'maxConnections' | 'workers'>;

export class WorkerListeners {
  readonly #context: WorkerContext;
  readonly #workerIndex: number;
  readonly #workers: number;
  readonly #globalLimit: ConnectionLimit;
  readonly #nextSerial: () => number;
  readonly #acceptFailures: AcceptFailures;
  readonly #listeners = new Map<number, ActiveListener>();
  readonly #builder: ChainBuilder;
  #departures: Departures | undefined;
  /** Sockets that are to be added when there are descriptors for them. */
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
    this.#globalLimit =
      maxConnections === undefined
        ? this.#limit(listenersBlock, GLOBAL_CONNECTION_LIMIT)
        : this.#monitored(listenersBlock, maxConnections);
    this.#workerIndex = index;
    this.#workers = workers;
    let serial = index;
    this.#nextSerial = () => (serial += workers);
  }

  /**
   * Adds a version of a listener, or gives other filter chains to the one of that id: connections keep the chain that they
   * began with. Throws when a chain cannot be built, or descriptors are short; everything is then as it was.
   */
  apply(snapshot: ListenerSnapshot): void {
    const existing = this.#listeners.get(snapshot.id);
    const made: FilterChain[] = [];
    try {
      const chains = snapshot.chains.map((chain) => {
        const known = existing?.chain(chain.id);
        if (known === undefined) made.push(this.#builder.chain(snapshot, chain));
        return known ?? made.at(-1)!;
      });
      const finder = finderOf(snapshot.chains, chains);
      if (existing !== undefined) existing.setChains(chains, finder);
      else this.#add(snapshot, chains, finder);
      this.#unbuilt.delete(snapshot.id);
    } catch (error) {
      for (const { terminal } of made) terminal.close?.();
      throw error;
    }
  }

  /** One that apply() could not build, and that is in use at other workers, is tried again. */
  applyLater(snapshot: ListenerSnapshot): void {
    this.#unbuilt.add(snapshot);
  }

  #add(snapshot: ListenerSnapshot, chains: readonly FilterChain[], finder: FilterChainFinder): void {
    const listener = this.#create(snapshot, chains, finder);
    listener.takeSockets(this.#socketsOf(snapshot), snapshot.isShared);
    if (this.#departures !== undefined) listener.depart(this.#departures);
    this.#listeners.set(snapshot.id, listener);
    if (snapshot.isListening) listener.accept();
  }

  /** Builds what of a snapshot takes long, for apply() and applyRoutes(), in steps between which requests are served. */
  prepare(snapshot: Pick<Snapshot, 'inlineRoutes' | 'listeners'>): Generator<void, void> {
    return this.#builder.prepare(snapshot);
  }

  /** Throws when routes cannot be built; none of these has changed then. */
  applyRoutes(snapshots: readonly InlineRoutesSnapshot[]): void {
    const changes = snapshots.map((snapshot) => this.#builder.routesChange(snapshot));
    for (const change of changes) change();
    for (const snapshot of snapshots) this.#unbuilt.setRoutes(snapshot);
  }

  /** Its sockets listen. */
  accept(id: number): void {
    this.#listeners.get(id)?.accept();
    this.#unbuilt.change(id, { isListening: true });
  }

  /** No connections are accepted until accept(). */
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

  /** It has further sockets, for accept(). Where descriptors are short, it gets them as soon as there are some. */
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

  /** No more connections are accepted; those that there are go on. */
  stop(ids: readonly number[], acceptRest: boolean): void {
    forEachGuarded(ids, 'internal error: a listener was not stopped', (id) => {
      this.#forgetLateSockets(id);
      this.#unbuilt.delete(id);
      this.#listeners.get(id)?.stop(acceptRest);
    });
  }

  #addLateSockets(sockets: WorkerSockets): void {
    this.#lateSockets.delete(sockets);
    this.addSockets(sockets);
    const listener = this.#listeners.get(sockets.id);
    if (listener?.suspendedSockets === 0) listener.accept();
  }

  /** The primary is about to close them: their numbers may come to name others. */
  #forgetLateSockets(id: number): void {
    for (const [sockets, timer] of this.#lateSockets) {
      if (sockets.id !== id) continue;
      clearTimeout(timer);
      this.#lateSockets.delete(sockets);
    }
  }

  /** Listeners and chains ask their connections to end, each in its own time. */
  drain(windows: ReadonlyMap<number, DrainWindow>): void {
    forEachGuarded(windows, 'internal error: a listener does not drain', ([id, window]) => {
      this.#unbuilt.change(id, { drain: window });
      const listener = this.#listeners.get(id);
      if (listener !== undefined) listener.beginDrain(window);
      else for (const each of this.#listeners.values()) each.beginDrain(window, id);
    });
  }

  /** Listeners drain so, or not at all, whatever was said before. */
  changeDrain(windows: ReadonlyMap<number, DrainWindow | undefined>): void {
    for (const [id, window] of windows) {
      this.#listeners.get(id)?.changeDrain(window);
      this.#unbuilt.change(id, { drain: window });
    }
  }

  /** Their time is over: connections that no response can end, end. */
  drainEnded(ids: readonly number[]): void {
    const what = 'internal error: the connections of a listener do not end';
    forEachGuarded(ids, what, (id) => this.#listeners.get(id)?.drainEnded());
  }

  /** What listeners, and chains that drain, have open. */
  connections(): WorkerConnections['listeners'] {
    const counts = new Map<number, OpenConnections>();
    for (const listener of this.#listeners.values()) listener.countOpen(counts);
    return counts;
  }

  /** Versions of listeners, or filter chains, are gone, and connections that they still have end. */
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
      }
    });
  }

  /** The thread ends, and all connections with it. */
  end(): void {
    this.#unbuilt.close();
    this.remove([...this.#listeners.keys()]);
  }

  /** The thread is about to die of `error`. */
  abandon(error: unknown): void {
    for (const listener of this.#listeners.values()) listener.abandon(error);
  }

  /** Other values hold from now on. */
  runtimeChanged(): void {
    this.#globalLimit.update();
    const what = 'internal error: a listener does not follow the runtime';
    forEachGuarded(this.#listeners.values(), what, (listener) => listener.runtimeChanged());
  }

  /** Those that this worker accepts on. */
  #socketsOf({ fds, isShared }: ListenerSnapshot): readonly number[] {
    return isShared ? fds : fds.filter((_, index) => this.#isOwn(index));
  }

  /** Whether this worker accepts on the socket with that number, if each worker has some of its own. */
  #isOwn(index: number): boolean {
    return index % this.#workers === this.#workerIndex;
  }

  #create(snapshot: ListenerSnapshot, chains: readonly FilterChain[], finder: FilterChainFinder): ActiveListener {
    const { block, config, id, name, statToken } = snapshot;
    const prefix = `listener.${statToken}.`;
    return new ActiveListener(
      {
        id,
        name,
        transport: this.#context.transport,
        stats: this.#context.scope(prefix, ListenerStats),
        workerStats: this.#context.scope(`${prefix}worker_${this.#workerIndex}.`, ListenerWorkerStats),
        acceptFailures: this.#acceptFailures,
        limits: bufferLimits(bufferLimitBytes(config.per_connection_buffer_limit_bytes)),
        connectionLimit: this.#limit(block, `envoy.resource_limits.listener.${name}.connection_limit`),
        globalLimit: config.ignore_global_conn_limit ? undefined : this.#globalLimit,
        nextSerial: this.#nextSerial,
        inspection: inspectionOf(config, this.#context),
      },
      chains,
      finder,
    );
  }

  #limit(block: number, key: string): ConnectionLimit {
    const { runtime, words } = this.#context;
    return new ConnectionLimit(words, block + ListenerWord.Connections, runtime.integer(key, UNLIMITED));
  }

  /** The limit of the overload manager's monitor, with its stats. */
  #monitored(block: number, limit: number): ConnectionLimit {
    const { runtime, words } = this.#context;
    const stats = this.#context.scope(resourcePrefix(CONNECTION_MONITOR), ResourceStats);
    return new ConnectionLimit(words, block + ListenerWord.Connections, runtime.integer(undefined, limit), () =>
      stats.increment(ResourceStats.at.failed_updates),
    );
  }

  /** Connections leave for another process, those that are there and those to come; undefined: no longer, and they drain. */
  depart(departures: Departures | undefined): void {
    this.#departures = departures;
    for (const listener of this.#listeners.values()) listener.depart(departures);
  }

  /** Whether a connection that another process has had can go on here; a text says why not. */
  expect(cargo: Cargo): Arrival | string {
    const { listener: name } = cargo.facts;
    // The version that was added last.
    const listener = [...this.#listeners.values()].findLast((each) => each.name === name);
    return listener?.expect(cargo) ?? `there is no listener '${name}'`;
  }
}
