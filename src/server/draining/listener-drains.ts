// The drains of a server's listeners, and how they stop: what the drain manager decides, with the sockets and the workers.

import { monotonicMs } from '../../io/timer-driver.js';
import { getLogger } from '../../log/logger.js';
import { ListenerManagerStats } from '../../stats/layouts/listener.js';
import type { WorkerConnections } from '../../worker/messages.js';
import type { PrimaryListener } from '../listeners/primary-listener.js';
import type { Primary } from '../primary.js';
import { type OpenConnections, openConnections } from '../workers/open-connections.js';
import { type Drain, type DrainDefaults, DrainManager, type DrainOptions, type LeavingDrain } from './drain-manager.js';

/** The listeners of a server, as far as drains are about them. */
export interface DrainedListeners {
  /** In use. */
  readonly byName: ReadonlyMap<string, PrimaryListener>;
  /** What updates have left. */
  readonly formers: {
    listeners(): Iterable<PrimaryListener>;
    readonly listenerCount: number;
    readonly chainCount: number;
  };
  /** Marks as stopped what accepts, or accepts inbound traffic. Returns what did; its sockets are open. */
  stop(inboundOnly: boolean): PrimaryListener[];
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
      stopListeners: (inboundOnly, acceptRest, endsSoon) =>
        endsSoon ? this.#stopNow(inboundOnly, acceptRest) : this.stopListeners(inboundOnly, acceptRest),
      changed: () => this.count(),
    });
  }

  /** Asks connections to end, for a time: see DrainManager. Time and strategy are the default ones if left out. */
  start(options: Omit<DrainOptions, keyof DrainDefaults> & Partial<DrainDefaults>): Drain {
    return this.manager.start({ ...this.#defaults, ...options });
  }

  /** Versions of listeners, or filter chains, that an update has left: see DrainManager. */
  leave(ids: readonly number[], over: () => void): LeavingDrain {
    return this.manager.leave(ids, this.#defaults, over);
  }

  /**
   * No listener, or none for inbound traffic, accepts from now on; connections that there are go on. Resolves when the sockets
   * are closed, or when a worker that is too busy has kept them open for a while. With `acceptRest` what waits at the sockets is
   * accepted first. A child process that begins is waited for: it has copies of the sockets, at which clients would wait for
   * nobody.
   */
  async stopListeners(inboundOnly: boolean, acceptRest: boolean): Promise<void> {
    const { takeOver } = this.#primary;
    if (takeOver.isBeginning) {
      logger.info('listeners are stopped when the child process has taken over, or is gone');
      await takeOver.settled;
    }
    await this.#stopNow(inboundOnly, acceptRest);
  }

  /** Closes the sockets of listeners that are marked as stopped, as stopListeners() does. */
  async stop(listeners: readonly PrimaryListener[], acceptRest: boolean): Promise<void> {
    const { publication, workers } = this.#primary;
    const ids = listeners.map((listener) => listener.id);
    const close = () => {
      for (const listener of listeners) listener.close();
    };
    // With the copies here a socket would still take connections after the workers have seen the last one, and reset them.
    if (acceptRest) await publication.whenHandled(close);
    workers.broadcast({ kind: 'stop-listeners', ids, acceptRest });
    // A worker that was about to begin has made its copies of the sockets by then.
    await publication.whenHandled(close);
  }

  /** What the workers have open now. */
  async openConnections(): Promise<OpenConnections> {
    const { concurrency, workers } = this.#primary;
    const answers = await workers.ask<WorkerConnections>((reply) => ({ kind: 'connections', reply }));
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

  #stopNow(inboundOnly: boolean, acceptRest: boolean): Promise<void> {
    return this.stop(this.#listeners.stop(inboundOnly), acceptRest);
  }
}
