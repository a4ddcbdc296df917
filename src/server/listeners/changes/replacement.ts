// The listeners while a child process serves in their place. Their sockets stay open, so that this process can resume if the
// child dies, and no connection in the kernel's queues is lost.

import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../../../common/errors/errors.js';
import { shownName } from '../../../common/text/shown.js';
import { getLogger } from '../../../log/logger.js';
import { ListenerManagerStats } from '../../../stats/layouts/listener.js';
import type { ListenerDrains } from '../../draining/listener-drains.js';
import type { Primary } from '../../primary.js';
import type { ListenerSpec, PrimaryListener } from '../version/primary-listener.js';
import type { ListenerRollout } from './listener-rollout.js';
import type { PresentListeners } from './present-listeners.js';

export interface ReplacementEvents {
  /** Drops the update with that name, which is not in use. */
  drop(name: string): void;
  /** Plans and applies an update that was held. */
  set(spec: ListenerSpec): void;
  /** Called when the number of listeners in a state has changed. */
  count(): void;
  /** Called when workers accept on sockets again. */
  onAccept(): void;
}

const logger = getLogger('main');

/** How long a dead child's address may stay in use. */
const REOPEN_MS = 2000;
const REOPEN_POLL_MS = 20;

export class Replacement {
  readonly #primary: Primary;
  readonly #present: PresentListeners;
  readonly #rollout: ListenerRollout;
  readonly #drains: ListenerDrains;
  readonly #events: ReplacementEvents;
  /** The child accepts on the sockets of these. */
  #suspended: PrimaryListener[] = [];
  /** Listeners whose sockets are closed or being closed: the child has not taken them, or has released them. */
  #dropped: PrimaryListener[] = [];
  #closing: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(
    primary: Primary,
    present: PresentListeners,
    rollout: ListenerRollout,
    drains: ListenerDrains,
    events: ReplacementEvents,
  ) {
    this.#primary = primary;
    this.#present = present;
    this.#rollout = rollout;
    this.#drains = drains;
    this.#events = events;
  }

  /**
   * Called when a child process serves: nothing is accepted here from now on. The child has the sockets of `taken`; the backlogs
   * of the others are accepted before these are closed. Resolves when workers no longer accept.
   */
  async begin(taken: ReadonlySet<PrimaryListener>): Promise<void> {
    const { publication, workers } = this.#primary;
    const { active, held, warming } = this.#present;
    this.#present.isReplaced = true;
    for (const [name, { spec }] of [...warming]) {
      if (!spec.isStatic) held.set(name, spec);
      this.#events.drop(name);
    }
    const listeners = [...active.values()].filter((each) => !each.isStopped || each.isSuspended);
    this.#suspended = listeners.filter((each) => taken.has(each));
    this.#dropped = listeners.filter((each) => !taken.has(each));
    for (const listener of listeners) {
      this.#primary.listenerManagerStats.increment(ListenerManagerStats.at.listener_stopped);
      logger.info(`listener '${shownName(listener.name)}' is stopped`);
    }
    for (const listener of this.#suspended) listener.suspend();
    workers.broadcast({ kind: 'suspend-listeners', ids: this.#suspended.map(({ id }) => id) });
    const handled = publication.whenHandled(() => {});
    this.#close(this.#dropped, true);
    this.#events.count();
    await Promise.all([handled, this.#closing]);
  }

  /** Called when the child stops accepting on the sockets of these. Resolves when the copies here are closed. */
  release(listeners: ReadonlySet<PrimaryListener>): Promise<void> {
    const released = this.#suspended.filter((each) => listeners.has(each));
    this.#suspended = this.#suspended.filter((each) => !listeners.has(each));
    this.#dropped.push(...released);
    return this.#close(released, false);
  }

  /**
   * Called when the child is dead: what accepted before the child accepts again, and held updates are applied. Resolves when
   * done: sockets that the child had not taken are closed, and bound again.
   */
  end(): Promise<void> {
    this.#present.isReplaced = false;
    const suspended = this.#suspended.splice(0);
    const dropped = this.#dropped.splice(0);
    for (const listener of suspended) if (this.#isActive(listener)) this.#resume(listener);
    this.#events.count();
    const reopened = this.#closing.then(async () => {
      // Another child may have taken over since, or the process may be ending.
      if (this.#present.isReplaced) {
        this.#dropped.push(...dropped);
        return;
      }
      await Promise.all(dropped.map((listener) => this.#reopen(listener)));
      if (dropped.length > 0) this.#events.onAccept();
      this.#events.count();
    });
    for (const [name, spec] of [...this.#present.held]) {
      this.#present.held.delete(name);
      this.#events.set(spec);
    }
    return reopened;
  }

  /** Called when this process ends: no client may be queued at a socket on which nothing accepts. */
  close(): void {
    this.#isClosed = true;
    void this.#close(this.#suspended.splice(0), false);
    this.#dropped = [];
  }

  #close(listeners: readonly PrimaryListener[], acceptRest: boolean): Promise<void> {
    if (listeners.length === 0) return Promise.resolve();
    const closed = this.#drains.stopAccepting(listeners, { acceptRest, hasSuccessor: false });
    this.#closing = Promise.all([this.#closing, closed]);
    return closed;
  }

  #isActive(listener: PrimaryListener): boolean {
    return this.#present.active.get(listener.name) === listener;
  }

  #resume(listener: PrimaryListener): void {
    // POST /drain_listeners has stopped it since.
    if (this.#present.stopped.includes(listener.config)) return void this.#close([listener], true);
    try {
      listener.resume();
      this.#rollout.announce(listener);
    } catch (error) {
      logger.error(`listener '${shownName(listener.name)}' cannot accept again: ${messageOf(error)}`);
    }
  }

  /** Retries for a while: the kernel closes the copies of a dead child one by one, possibly after its control connection. */
  async #reopen(listener: PrimaryListener): Promise<void> {
    for (const endMs = performance.now() + REOPEN_MS; this.#mayReopen(listener); await pause(REOPEN_POLL_MS)) {
      try {
        listener.reopen();
        this.#primary.workers.broadcast({ kind: 'add-sockets', sockets: listener.sockets });
        return this.#rollout.accept(listener);
      } catch (error) {
        if (performance.now() < endMs) continue;
        return logger.error(`listener '${shownName(listener.name)}' cannot be opened again: ${messageOf(error)}`);
      }
    }
  }

  #mayReopen(listener: PrimaryListener): boolean {
    return !this.#isClosed && this.#isActive(listener) && !this.#present.stopped.includes(listener.config);
  }
}
