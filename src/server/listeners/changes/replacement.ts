// The listeners while a child process serves in their place: their sockets stay open, so that they can go on where a dead child has
// left them, and no connection in the kernel's queues is lost.

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
  /** Drops the update of that name, which is not in use. */
  drop(name: string): void;
  /** Plans and applies an update that was held meanwhile. */
  set(spec: ListenerSpec): void;
  /** The numbers of listeners have changed. */
  count(): void;
  /** Workers accept on sockets again. */
  onAccept(): void;
}

const logger = getLogger('main');

/** How long an address may stay in use that a dead child has had. */
const REOPEN_MS = 2000;
const REOPEN_POLL_MS = 20;

export class Replacement {
  readonly #primary: Primary;
  readonly #present: PresentListeners;
  readonly #rollout: ListenerRollout;
  readonly #drains: ListenerDrains;
  readonly #events: ReplacementEvents;
  /** The child accepts at their sockets. */
  #suspended: PrimaryListener[] = [];
  /** Their sockets are closed, or about to be: the child has none of them, or has given them up. */
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
   * A child process serves: nothing is accepted from now on. It has the sockets of `taken`; what waits at the others is accepted
   * first, and they are closed. Resolves when workers accept nothing any more.
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

  /** The child stops accepting at the sockets of these. Resolves when there are no copies here. */
  release(listeners: ReadonlySet<PrimaryListener>): Promise<void> {
    const released = this.#suspended.filter((each) => listeners.has(each));
    this.#suspended = this.#suspended.filter((each) => !listeners.has(each));
    this.#dropped.push(...released);
    return this.#close(released, false);
  }

  /**
   * The child is dead: all that accepted before it did accept again, and what was held meanwhile happens. Resolves when that is done: what
   * the child had not taken is closed, and is bound once more.
   */
  end(): Promise<void> {
    this.#present.isReplaced = false;
    const suspended = this.#suspended.splice(0);
    const dropped = this.#dropped.splice(0);
    for (const listener of suspended) if (this.#isActive(listener)) this.#resume(listener);
    this.#events.count();
    const reopened = this.#closing.then(async () => {
      // Meanwhile another child may have taken over, or the process may end.
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

  /** This process ends: nobody is to wait at sockets that it does not accept on. */
  close(): void {
    this.#isClosed = true;
    void this.#close(this.#suspended.splice(0), false);
    this.#dropped = [];
  }

  #close(listeners: readonly PrimaryListener[], acceptRest: boolean): Promise<void> {
    if (listeners.length === 0) return Promise.resolve();
    const closed = this.#drains.stopAccepting(listeners, { acceptRest, goesOn: false });
    this.#closing = Promise.all([this.#closing, closed]);
    return closed;
  }

  #isActive(listener: PrimaryListener): boolean {
    return this.#present.active.get(listener.name) === listener;
  }

  #resume(listener: PrimaryListener): void {
    // Meanwhile POST /drain_listeners has stopped it.
    if (this.#present.stopped.includes(listener.config)) return void this.#close([listener], true);
    try {
      listener.resume();
      this.#rollout.announce(listener);
    } catch (error) {
      logger.error(`listener '${shownName(listener.name)}' cannot accept again: ${messageOf(error)}`);
    }
  }

  /** Retries for a while: the kernel closes the copies of a dead child one after the other, maybe after its link. */
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
