// The listeners of one worker: built from snapshots, kept by name.

import type { Any } from '../config/generated/api.js';
import type { ListenerIdentity, WorkerContext } from '../extensions/factories.js';
import { bufferLimits } from '../io/transport.js';
import { ActiveListener } from '../listener/active-listener.js';
import { ConnectionLimit, GLOBAL_CONNECTION_LIMIT, UNLIMITED } from '../listener/connection-limit.js';
import type { DrainWindow } from '../listener/drain-window.js';
import { ListenerDrain } from '../listener/listener-drain.js';
import type { FilterChain } from '../listener/network-filter.js';
import type { Arrival, Cargo, Departures } from '../listener/travel.js';
import { getLogger } from '../log/logger.js';
import { ListenerStats, ListenerWorkerStats } from '../stats/layouts/listener.js';
import { ListenerWord } from '../upstream/shared-words.js';
import { chainFingerprint } from './chain-fingerprint.js';
import type { ListenerSnapshot, WorkerConnections } from './messages.js';

const logger = getLogger('config');

/** per_connection_buffer_limit_bytes when it is not set. */
export const DEFAULT_BUFFER_LIMIT = 1024 * 1024;

export class WorkerListeners {
  readonly #context: WorkerContext;
  readonly #workerIndex: number;
  readonly #globalLimit: ConnectionLimit;
  readonly #nextSerial: () => number;
  readonly #listeners = new Map<string, ActiveListener>();

  /** `listenersBlock` is the block of all listeners together in the shared words. */
  constructor(context: WorkerContext, workerIndex: number, workers: number, listenersBlock: number) {
    this.#context = context;
    this.#globalLimit = this.#limit(listenersBlock, GLOBAL_CONNECTION_LIMIT);
    this.#workerIndex = workerIndex;
    let serial = workerIndex;
    this.#nextSerial = () => (serial += workers);
  }

  /**
   * Adds a listener, or gives a new filter chain to the one of that name: its connections keep the chain that they began
   * with. Throws when the chain cannot be built; everything is then as it was.
   */
  apply(snapshot: ListenerSnapshot): void {
    const chain = this.#buildChain(snapshot);
    const existing = this.#listeners.get(snapshot.name);
    if (existing !== undefined) {
      existing.replaceChain(chain);
      return;
    }
    const listener = this.#create(snapshot, chain);
    this.#listeners.set(snapshot.name, listener);
    listener.listen(snapshot.fds, snapshot.isShared);
  }

  /** Accepts on further sockets. */
  accept(name: string, fds: readonly number[], isShared: boolean): void {
    this.#listeners.get(name)?.listen(fds, isShared);
  }

  /** No more connections are accepted; those that there are go on. */
  stop(name: string, acceptRest: boolean): void {
    this.#listeners.get(name)?.stop(acceptRest);
  }

  /** Listeners ask their connections to end, each in its own time. */
  drain(windows: ReadonlyMap<string, DrainWindow>): void {
    for (const [name, window] of windows) {
      const listener = this.#listeners.get(name);
      if (listener !== undefined) listener.drain.window = window;
    }
  }

  /** Their time is over: connections that no response can end, end. */
  drainEnded(names: readonly string[]): void {
    for (const name of names) this.#listeners.get(name)?.drainEnded();
  }

  /** What each listener has open, by name. */
  connections(): WorkerConnections['listeners'] {
    const counts = new Map<string, { connections: number; requests: number }>();
    for (const [name, listener] of this.#listeners) {
      counts.set(name, { connections: listener.connectionCount, requests: listener.requestCount });
    }
    return counts;
  }

  /** stop(), and the name is free. */
  remove(name: string): void {
    this.stop(name, false);
    this.#listeners.delete(name);
  }

  /** Other values hold from now on. */
  runtimeChanged(): void {
    this.#globalLimit.update();
    for (const listener of this.#listeners.values()) listener.runtimeChanged();
  }

  get names(): string[] {
    return [...this.#listeners.keys()];
  }

  #create(snapshot: ListenerSnapshot, chain: FilterChain): ActiveListener {
    const { block, config, name, statToken } = snapshot;
    const prefix = `listener.${statToken}.`;
    const limit = config.per_connection_buffer_limit_bytes ?? DEFAULT_BUFFER_LIMIT;
    const drain = new ListenerDrain(config.drain_type === 'MODIFY_ONLY' ? undefined : this.#context.serverHealth);
    drain.window = snapshot.drain;
    return new ActiveListener(
      {
        name,
        transport: this.#context.transport,
        stats: this.#context.scope(prefix, ListenerStats),
        workerStats: this.#context.scope(`${prefix}worker_${this.#workerIndex}.`, ListenerWorkerStats),
        logger,
        limits: bufferLimits(limit),
        connectionLimit: this.#limit(block, `envoy.resource_limits.listener.${name}.connection_limit`),
        globalLimit: config.ignore_global_conn_limit ? undefined : this.#globalLimit,
        drain,
        nextSerial: this.#nextSerial,
      },
      chain,
    );
  }

  #limit(block: number, key: string): ConnectionLimit {
    const { runtime, words } = this.#context;
    return new ConnectionLimit(words, block + ListenerWord.Connections, runtime.integer(key, UNLIMITED));
  }

  /** Connections leave for another process, those that are there and those to come; undefined: no longer, and they drain. */
  depart(departures: Departures | undefined): void {
    for (const listener of this.#listeners.values()) listener.depart(departures);
  }

  /** Whether a connection that another process has had can go on here; a text says why not. */
  expect(cargo: Cargo): Arrival | string {
    const { listener } = cargo.facts;
    return this.#listeners.get(listener)?.expect(cargo) ?? `there is no listener '${listener}'`;
  }

  #buildChain({ name, config, statToken }: ListenerSnapshot): FilterChain {
    const fingerprint = () => chainFingerprint(config);
    const chain = config.filter_chains![0]!;
    const bufferLimit = config.per_connection_buffer_limit_bytes ?? DEFAULT_BUFFER_LIMIT;
    const identity: ListenerIdentity = { name, statToken, bufferLimit };
    const filterConfig: Any | undefined = chain.filters?.at(-1)?.typed_config;
    if (filterConfig === undefined) return { name: chain.name ?? '', terminal: NO_FILTERS, fingerprint };
    const extension = this.#context.extensions.networkFilter(filterConfig);
    return {
      name: chain.name ?? '',
      terminal: extension.createOnWorker(filterConfig, identity, this.#context),
      fingerprint,
    };
  }
}

/** A chain without filters closes its connections. */
const NO_FILTERS: FilterChain['terminal'] = {
  accept(connection) {
    connection.close(0);
    return undefined;
  },
};
