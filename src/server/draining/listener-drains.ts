// Drains and stops a server's listeners: applies the drain manager's decisions to sockets and workers.

import { monotonicMs } from '../../io/time/timer-driver.js';
import { getLogger } from '../../log/logger.js';
import { ListenerManagerStats } from '../../stats/layouts/listener.js';
import type { WorkerConnections } from '../../worker/messages/messages.js';
import type { PrimaryListener } from '../listeners/version/primary-listener.js';
import type { Primary } from '../primary.js';
import { type OpenConnections, openConnections } from '../workers/open-connections.js';
import {
  type Drain,
  type DrainDefaults,
  DrainManager,
  type DrainOptions,
  type ReplacementDrain,
  type StopOptions,
} from './drain-manager.js';
import type { DrainReach } from './drain-reach.js';

/** The listeners of a server, for drains. */
export interface DrainedListeners {
  /** Listeners in use. */
  readonly byName: ReadonlyMap<string, PrimaryListener>;
  /** The listeners and filter chains that updates have replaced and that still drain. */
  readonly draining: {
    listeners(): Iterable<PrimaryListener>;
    readonly listenerCount: number;
    readonly chainCount: number;
  };
  /** Marks all listeners, or those for inbound traffic, as stopped. Returns those that were not; their sockets are still open. */
  markStopped(reach: DrainReach): PrimaryListener[];
}

const logger = getLogger('main');

export class ListenerDrains {
  readonly manager: DrainManager;
  readonly #primary: Primary;
  readonly #defaults: DrainDefaults;
  readonly #listeners: DrainedListeners;

  constructor(primary: Primary, defaults: DrainDefaults, listeners: DrainedListeners) {
    this.#primary = primary;
    this.#defaults = defaults;
    this.#listeners = listeners;
    this.manager = new DrainManager({
      timers: primary.timers,
      now: monotonicMs,
      listeners: () => [...listeners.byName.values(), ...listeners.draining.listeners()],
      broadcast: (message) => primary.workers.broadcast(message),
      stopListeners: (reach, options) => this.stopListeners(reach, options),
      changed: () => this.count(),
    });
  }

  /** See DrainManager.start(). Time and strategy are optional. */
  start(options: Omit<DrainOptions, keyof DrainDefaults> & Partial<DrainDefaults>): Drain {
    return this.manager.start({ ...this.#defaults, ...options });
  }

  /** Undoes start(): connections of listeners in use are no longer asked to close. */
  undo(drain: Drain): void {
    this.manager.undo(drain, this.#listeners.byName.values());
  }

  /** See DrainManager.drainReplaced(). */
  drainReplaced(id: number, over: () => void): ReplacementDrain {
    return this.manager.drainReplaced(id, this.#defaults, over);
  }

  /**
   * Stops all listeners, or those for inbound traffic; established connections continue. Resolves when the sockets are closed, or
   * when a busy worker has kept them open for too long. Waits for a child process that is starting: it has copies of the sockets,
   * on which clients would hang.
   */
  async stopListeners(reach: DrainReach, { acceptRest, endsSoon = false }: StopOptions): Promise<void> {
    const { takeOver } = this.#primary;
    if (takeOver.isBeginning && !endsSoon) {
      logger.info('listeners are stopped when the child process has taken over or ended');
      await takeOver.settled;
    }
    const stopped = this.#listeners.markStopped(reach);
    // A drain with an expired time was still in force while they accepted.
    this.count();
    await this.stopAccepting(stopped, { acceptRest, hasSuccessor: false });
  }

  /** Stops these listeners, without waiting for a child process. `hasSuccessor`: other versions have their sockets. */
  async stopAccepting(
    listeners: readonly PrimaryListener[],
    { acceptRest, hasSuccessor }: Pick<StopOptions, 'acceptRest'> & { readonly hasSuccessor: boolean },
  ): Promise<void> {
    const { publication, workers } = this.#primary;
    for (const listener of listeners) listener.stop();
    if (!hasSuccessor) await this.#release(listeners);
    const ids = listeners.map((listener) => listener.id);
    const close = () => {
      for (const listener of listeners) listener.close();
    };
    // While the primary's copies are open, the kernel would queue connections that no worker accepts any more, and reset them.
    if (acceptRest) await publication.whenHandled(close);
    workers.broadcast({ kind: 'stop-listeners', ids, acceptRest });
    // By then a worker that was starting has duplicated the sockets.
    await publication.whenHandled(close);
  }

  /** Makes a parent process close its copies of the sockets: clients queued there would never be served. */
  async #release(listeners: readonly PrimaryListener[]): Promise<void> {
    const ids = listeners.flatMap(({ lineage }) => lineage.ofParent?.id ?? []);
    if (ids.length > 0) await this.#primary.epoch.parentSockets?.onRelease(ids);
  }

  /** Returns the workers' open connections. */
  async openConnections(): Promise<OpenConnections> {
    const { concurrency, workers } = this.#primary;
    const answers = await workers.query<WorkerConnections>((reply) => ({ kind: 'connections', reply }));
    return openConnections(answers, concurrency);
  }

  /** Sets the gauges of draining listeners and filter chains: those that an update has replaced, as in Envoy. */
  count(): void {
    const { draining } = this.#listeners;
    const { at } = ListenerManagerStats;
    this.#primary.listenerManagerStats.set(at.total_listeners_draining, draining.listenerCount);
    this.#primary.listenerManagerStats.set(at.total_filter_chains_draining, draining.chainCount);
  }
}
