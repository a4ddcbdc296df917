// Listener versions and filter chains that an update has replaced. They drain; after that workers forget them, and their connections
// are closed.

import { monotonicMs } from '../../../io/time/timer-driver.js';
import type { DrainWindow } from '../../../listener/drain-window.js';
import { forEachGuarded, internalError } from '../../../log/internal-errors.js';
import type { LeavingDrain } from '../../draining/drain-manager.js';
import type { ListenerDrains } from '../../draining/listener-drains.js';
import type { TakeOver } from '../../restart/take-over.js';
import type { PrimaryChain } from '../version/primary-chain.js';
import type { PrimaryListener } from '../version/primary-listener.js';
import type { ListenerRollout } from './listener-rollout.js';

/** What has been replaced. */
export interface Former {
  /** Of the chain, or else of the version. */
  readonly id: number;
  readonly listener: PrimaryListener;
  /** Undefined: the whole version. */
  readonly chain: PrimaryChain | undefined;
  readonly window: DrainWindow;
}

/** So many stay visible until their drain time is over even without connections. Further ones go as soon as they are empty. */
const KEPT_EMPTY = 16;
/** How often empty ones are looked for. */
const LOOK_MS = 2000;

export class FormerListeners {
  readonly #takeOver: Pick<TakeOver, 'isDone'>;
  readonly #drains: ListenerDrains;
  readonly #rollout: Pick<ListenerRollout, 'forget'>;
  readonly #formers = new Set<Leaving>();
  #waiting: { readonly formers: Set<Leaving>; readonly callback: () => void }[] = [];
  #look: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(takeOver: Pick<TakeOver, 'isDone'>, drains: ListenerDrains, rollout: Pick<ListenerRollout, 'forget'>) {
    this.#takeOver = takeOver;
    this.#drains = drains;
    this.#rollout = rollout;
  }

  /** A version, which stops accepting if it has not yet. `goesOn`: another one has its sockets; else what waits there is accepted first. */
  addListener(listener: PrimaryListener, goesOn: boolean): void {
    if (!listener.isStopped) void this.#drains.stopAccepting([listener], { acceptRest: !goesOn, goesOn });
    // What waits there is the child process's.
    else if (listener.isSuspended) void this.#drains.stopAccepting([listener], { acceptRest: false, goesOn });
    this.#add(listener, undefined);
  }

  /** The child process that had taken over is dead: those whose time was over meanwhile go. */
  takeBack(): void {
    const now = monotonicMs();
    this.#remove([...this.#formers].filter(({ window }) => window.startMs + window.timeMs <= now));
  }

  /** Chains that take no more connections. */
  addChains(listener: PrimaryListener, chains: readonly PrimaryChain[]): void {
    for (const chain of chains) this.#add(listener, chain);
  }

  /** The oldest first. */
  get all(): Iterable<Former> {
    return this.#formers;
  }

  *listeners(): Generator<PrimaryListener> {
    for (const { chain, listener } of this.#formers) if (chain === undefined) yield listener;
  }

  get chainCount(): number {
    let count = 0;
    for (const { chain } of this.#formers) if (chain !== undefined) count++;
    return count;
  }

  get listenerCount(): number {
    return this.#formers.size - this.chainCount;
  }

  /** Calls back, once, when all that drain now are gone; immediately when there are none. */
  whenGone(callback: () => void): void {
    if (this.#formers.size === 0) callback();
    else this.#waiting.push({ formers: new Set(this.#formers), callback });
  }

  /** Cancels all drains, and closes the sockets of versions. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#look);
    for (const { drain, listener } of this.#formers) {
      drain.cancel();
      listener.close();
    }
  }

  #add(listener: PrimaryListener, chain: PrimaryChain | undefined): void {
    const { id } = chain ?? listener;
    const drain = this.#drains.leave(id, () => this.#remove([former]));
    const former: Leaving = { id, listener, chain, drain, window: drain.window, isEmpty: false };
    this.#formers.add(former);
    this.#drains.count();
    if (this.#formers.size > KEPT_EMPTY) this.#look ??= setTimeout(() => void this.#removeEmpty(), LOOK_MS);
  }

  #remove(formers: readonly Leaving[]): void {
    // When a child process has taken over, connections may still be on their way to it.
    if (this.#isClosed || this.#takeOver.isDone) return;
    const removed: Leaving[] = [];
    for (const former of formers) {
      // The chains of a version go with the version.
      const chains = [...this.#formers].filter(
        ({ chain, listener }) => former.chain === undefined && chain !== undefined && listener === former.listener,
      );
      for (const each of [former, ...chains]) if (this.#formers.delete(each)) removed.push(each);
    }
    for (const { drain } of removed) drain.cancel();
    this.#rollout.forget(removed.map(({ chain, listener }) => chain ?? listener));
    this.#drains.count();
    this.#tellGone(removed);
  }

  #tellGone(removed: readonly Leaving[]): void {
    for (const { formers } of this.#waiting) for (const former of removed) formers.delete(former);
    const gone = this.#waiting.filter(({ formers }) => formers.size === 0);
    this.#waiting = this.#waiting.filter(({ formers }) => formers.size > 0);
    forEachGuarded(gone, 'internal error: what waited for listeners to go cannot go on', ({ callback }) => callback());
  }

  /** Removes those without connections now and the last time: whatever was pending at a socket has been accepted since. */
  async #removeEmpty(): Promise<void> {
    try {
      const open = await this.#drains.openConnections();
      const most = this.#formers.size - KEPT_EMPTY;
      const empty: Leaving[] = [];
      for (const former of this.#formers) {
        // Some may have gone during the wait: then there are fewer than are kept.
        if (empty.length >= most) break;
        const wasEmpty = former.isEmpty;
        former.isEmpty = open.isComplete && (open.listeners.get(former.id)?.connections ?? 0) === 0;
        if (wasEmpty && former.isEmpty) empty.push(former);
      }
      if (empty.length > 0) this.#remove(empty);
    } catch (error) {
      internalError('internal error: listeners that drain cannot be looked at', error);
    }
    this.#look = undefined;
    if (!this.#isClosed && this.#formers.size > KEPT_EMPTY) {
      this.#look = setTimeout(() => void this.#removeEmpty(), LOOK_MS);
    }
  }
}

interface Leaving extends Former {
  readonly drain: LeavingDrain;
  isEmpty: boolean;
}
