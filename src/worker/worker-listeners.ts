// The listeners of one worker: built from snapshots, kept by name.

import type { Any } from '../config/generated/api.js';
import type { ListenerIdentity, WorkerContext } from '../extensions/factories.js';
import { bufferLimits } from '../io/transport.js';
import { ActiveListener } from '../listener/active-listener.js';
import type { FilterChain } from '../listener/network-filter.js';
import { getLogger } from '../log/logger.js';
import { ListenerStats, ListenerWorkerStats } from '../stats/layouts/listener.js';
import type { ListenerSnapshot } from './messages.js';

const logger = getLogger('config');

/** per_connection_buffer_limit_bytes when it is not set. */
export const DEFAULT_BUFFER_LIMIT = 1024 * 1024;

export class WorkerListeners {
  readonly #context: WorkerContext;
  readonly #workerIndex: number;
  readonly #nextSerial: () => number;
  readonly #listeners = new Map<string, ActiveListener>();

  constructor(context: WorkerContext, workerIndex: number, workers: number) {
    this.#context = context;
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
    if (snapshot.fd !== undefined) listener.listen(snapshot.fd, snapshot.isShared);
  }

  /** No more connections are accepted; those that there are go on. */
  stop(name: string): void {
    this.#listeners.get(name)?.stop(false);
  }

  /** stop(), and the name is free. */
  remove(name: string): void {
    this.stop(name);
    this.#listeners.delete(name);
  }

  get names(): string[] {
    return [...this.#listeners.keys()];
  }

  #create({ name, config, statToken }: ListenerSnapshot, chain: FilterChain): ActiveListener {
    const prefix = `listener.${statToken}.`;
    const limit = config.per_connection_buffer_limit_bytes ?? DEFAULT_BUFFER_LIMIT;
    return new ActiveListener(
      {
        name,
        transport: this.#context.transport,
        stats: this.#context.scope(prefix, ListenerStats),
        workerStats: this.#context.scope(`${prefix}worker_${this.#workerIndex}.`, ListenerWorkerStats),
        logger,
        limits: bufferLimits(limit),
        nextSerial: this.#nextSerial,
      },
      chain,
    );
  }

  #buildChain({ name, config, statToken }: ListenerSnapshot): FilterChain {
    const chain = config.filter_chains![0]!;
    const bufferLimit = config.per_connection_buffer_limit_bytes ?? DEFAULT_BUFFER_LIMIT;
    const identity: ListenerIdentity = { name, statToken, bufferLimit };
    const filterConfig: Any | undefined = chain.filters?.at(-1)?.typed_config;
    if (filterConfig === undefined) return { name: chain.name ?? '', terminal: NO_FILTERS };
    const extension = this.#context.extensions.networkFilter(filterConfig);
    return { name: chain.name ?? '', terminal: extension.createOnWorker(filterConfig, identity, this.#context) };
  }
}

/** A chain without filters closes its connections. */
const NO_FILTERS: FilterChain['terminal'] = {
  accept(connection) {
    connection.close(0);
    return undefined;
  },
};
