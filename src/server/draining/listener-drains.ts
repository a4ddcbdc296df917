// The drains of a server's listeners, and how they stop: what the drain manager decides, with the sockets and the workers.

import type { Timers } from '../../io/timing-wheel.js';
import { getLogger } from '../../log/logger.js';
import { ListenerManagerStats } from '../../stats/layouts/listener.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { WorkerConnections } from '../../worker/messages.js';
import type { ListenerSet } from '../listeners/listener-set.js';
import type { PrimaryListener } from '../listeners/primary-listener.js';
import type { TakeOver } from '../restart/take-over.js';
import { type OpenConnections, openConnections } from '../workers/open-connections.js';
import type { Publication } from '../workers/publication.js';
import type { WorkerSet } from '../workers/worker-set.js';
import { type Drain, DrainManager, type DrainOptions } from './drain-manager.js';

export interface ListenerDrainsHost {
  readonly concurrency: number;
  /** How drains are that say nothing else. */
  readonly defaults: Pick<DrainOptions, 'timeMs' | 'strategy'>;
  readonly timers: Timers;
  /** Monotonic. */
  now(): number;
  readonly workers: WorkerSet;
  readonly publication: Publication;
  /** The scope listener_manager. */
  readonly stats: Scope;
  /** Asked for when there are any. */
  listeners(): ListenerSet;
  /** By a child process. */
  readonly takeOver: TakeOver;
}

const logger = getLogger('main');

export class ListenerDrains {
  readonly #host: ListenerDrainsHost;
  readonly #manager: DrainManager;

  constructor(host: ListenerDrainsHost) {
    this.#host = host;
    this.#manager = new DrainManager({
      timers: host.timers,
      now: () => host.now(),
      listeners: () => [...host.listeners().byName.values(), ...host.listeners().formers.listeners()],
      broadcast: (message) => host.workers.broadcast(message),
      stopListeners: (inboundOnly, acceptRest, endsSoon) =>
        endsSoon ? this.#stopNow(inboundOnly, acceptRest) : this.stopListeners(inboundOnly, acceptRest),
      changed: () => this.count(),
    });
  }

  get manager(): DrainManager {
    return this.#manager;
  }

  /** Asks connections to end, for a time: see DrainManager. Time and strategy are the default ones if left out. */
  start(options: Omit<DrainOptions, 'timeMs' | 'strategy'> & Partial<DrainOptions>): Drain {
    return this.#manager.start({ ...this.#host.defaults, ...options });
  }

  /** Versions of listeners, or filter chains, that an update has left: see DrainManager. */
  leave(ids: readonly number[], over: () => void) {
    return this.#manager.leave(ids, this.#host.defaults, over);
  }

  /**
   * No listener, or none for inbound traffic, accepts from now on; connections that there are go on. Resolves when the sockets
   * are closed, or when a worker that is too busy has kept them open for a while. With `acceptRest` what waits at the sockets is
   * accepted first. A child process that begins is waited for: it has copies of the sockets, at which clients would wait for
   * nobody.
   */
  async stopListeners(inboundOnly: boolean, acceptRest: boolean): Promise<void> {
    const { takeOver } = this.#host;
    if (takeOver.isBeginning) {
      logger.info('listeners are stopped when the child process has taken over, or is gone');
      await takeOver.settled;
    }
    await this.#stopNow(inboundOnly, acceptRest);
  }

  /** Closes the sockets of listeners that are marked as stopped, as stopListeners() does. */
  async stop(listeners: readonly PrimaryListener[], acceptRest: boolean): Promise<void> {
    const { publication, workers } = this.#host;
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
    const answers = await this.#host.workers.ask<WorkerConnections>((reply) => ({ kind: 'connections', reply }));
    return openConnections(answers, this.#host.concurrency);
  }

  /** Sets the gauge of listeners that drain. */
  count(): void {
    const { byName, formers } = this.#host.listeners();
    let draining = formers.listenerCount;
    for (const listener of byName.values()) if (this.#manager.isDraining(listener)) draining++;
    this.#host.stats.set(ListenerManagerStats.at.total_listeners_draining, draining);
  }

  #stopNow(inboundOnly: boolean, acceptRest: boolean): Promise<void> {
    return this.stop(this.#host.listeners().stop(inboundOnly), acceptRest);
  }
}
