// Drains and stops a server's listeners: carries out on sockets and workers what the drain manager decides.

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
  type LeavingDrain,
  type StopOptions,
} from './drain-manager.js';
import type { DrainReach } from './drain-reach.js';

/** What drains need to know of a server's listeners. */
export interface DrainedListeners {
  /** In use. */
  readonly byName: ReadonlyMap<string, PrimaryListener>;
  /** What updates have replaced, and still drains. */
  readonly formers: {
    listeners(): Iterable<PrimaryListener>;
    readonly listenerCount: number;
    readonly chainCount: number;
  };
  /** Marks all listeners, or those for inbound traffic, as stopped. Returns those that were not yet; their sockets are still open. */
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
      listeners: () => [...listeners.byName.values(), ...listeners.formers.listeners()],
      broadcast: (message) => primary.workers.broadcast(message),
      stopListeners: (reach, options) => this.stopListeners(reach, options),
      changed: () => this.count(),
    });
  }

  /** See DrainManager.start(). Time and strategy may be left out. */
  start(options: Omit<DrainOptions, keyof DrainDefaults> & Partial<DrainDefaults>): Drain {
    return this.manager.start({ ...this.#defaults, ...options });
  }

  /** Takes back what start() has begun: connections of listeners that are in use are not asked to end any more. */
  undo(drain: Drain): void {
    this.manager.undo(drain, this.#listeners.byName.values());
  }

  /** See DrainManager.leave(). */
  leave(id: number, over: () => void): LeavingDrain {
    return this.manager.leave(id, this.#defaults, over);
  }

  /**
   * Stops all listeners, or those for inbound traffic; established connections go on. Resolves when the sockets are closed, or when a
   * busy worker has kept them open for too long. Waits for a child process that is starting: it has copies of the sockets, and
   * clients would hang at those.
   */
  async stopListeners(reach: DrainReach, { acceptRest, endsSoon = false }: StopOptions): Promise<void> {
    const { takeOver } = this.#primary;
    if (takeOver.isBeginning && !endsSoon) {
      logger.info('listeners are stopped when the child process has taken over, or is gone');
      await takeOver.settled;
    }
    const stopped = this.#listeners.markStopped(reach);
    // A drain whose time was over went on as long as they accepted.
    this.count();
    await this.stopAccepting(stopped, { acceptRest, goesOn: false });
  }

  /** The same for these listeners, and without waiting for a child process. `goesOn`: other versions have their sockets. */
  async stopAccepting(
    listeners: readonly PrimaryListener[],
    { acceptRest, goesOn }: Pick<StopOptions, 'acceptRest'> & { readonly goesOn: boolean },
  ): Promise<void> {
    const { publication, workers } = this.#primary;
    for (const listener of listeners) listener.stop();
    if (!goesOn) await this.#release(listeners);
    const ids = listeners.map((listener) => listener.id);
    const close = () => {
      for (const listener of listeners) listener.close();
    };
    // While the primary has its copies open, the kernel would queue connections that no worker accepts any more, and reset them.
    if (acceptRest) await publication.whenHandled(close);
    workers.broadcast({ kind: 'stop-listeners', ids, acceptRest });
    // By then a worker that was just starting has made its copies of the sockets.
    await publication.whenHandled(close);
  }

  /** A parent process that has copies of the sockets closes them: what comes to those would wait for nobody. */
  async #release(listeners: readonly PrimaryListener[]): Promise<void> {
    const ids = listeners.flatMap(({ lineage }) => lineage.ofParent?.id ?? []);
    if (ids.length > 0) await this.#primary.epoch.parentSockets?.onRelease(ids);
  }

  /** What the workers have open now. */
  async openConnections(): Promise<OpenConnections> {
    const { concurrency, workers } = this.#primary;
    const answers = await workers.query<WorkerConnections>((reply) => ({ kind: 'connections', reply }));
    return openConnections(answers, concurrency);
  }

  /** Sets the gauges of listeners and filter chains that drain. */
  count(): void {
    const { byName, formers } = this.#listeners;
    const { at } = ListenerManagerStats;
    let draining = formers.listenerCount;
    for (const listener of byName.values()) if (this.manager.isDraining(listener)) draining++;
    this.#primary.listenerManagerStats.set(at.total_listeners_draining, draining);
    this.#primary.listenerManagerStats.set(at.total_filter_chains_draining, formers.chainCount);
  }
}
