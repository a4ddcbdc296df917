// Listener versions and filter chains that an update has replaced. They drain; afterwards workers remove them and close their
// connections.

import { monotonicMs } from '../../../io/time/timer-driver.js';
import type { DrainWindow } from '../../../listener/drain-window.js';
import { forEachGuarded, internalError } from '../../../log/internal-errors.js';
import type { ReplacementDrain } from '../../draining/drain-manager.js';
import type { ListenerDrains } from '../../draining/listener-drains.js';
import type { TakeOver } from '../../restart/take-over.js';
import type { PrimaryChain } from '../version/primary-chain.js';
import type { PrimaryListener } from '../version/primary-listener.js';
import type { ListenerRollout } from './listener-rollout.js';

/** A replaced listener version or filter chain. */
export interface DrainingItem {
  /** Id of the chain, or else of the version. */
  readonly id: number;
  readonly listener: PrimaryListener;
  /** Undefined for a whole version. */
  readonly chain: PrimaryChain | undefined;
  readonly window: DrainWindow;
}

/**
 * This many stay visible until their drain time is over, even without connections. Others are removed as soon as they are empty.
 */
const KEPT_EMPTY = 16;
/** Interval of the checks for empty ones. */
const CHECK_MS = 2000;

export class DrainingListeners {
  readonly #takeOver: Pick<TakeOver, 'isDone'>;
  readonly #drains: ListenerDrains;
  readonly #rollout: Pick<ListenerRollout, 'remove'>;
  readonly #entries = new Set<Entry>();
  #waiting: { readonly entries: Set<Entry>; readonly callback: () => void }[] = [];
  #checkTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(takeOver: Pick<TakeOver, 'isDone'>, drains: ListenerDrains, rollout: Pick<ListenerRollout, 'remove'>) {
    this.#takeOver = takeOver;
    this.#drains = drains;
    this.#rollout = rollout;
  }

  /** Adds a version, and stops it. `hasSuccessor`: another version has its sockets; otherwise the backlog is accepted first. */
  addListener(listener: PrimaryListener, hasSuccessor: boolean): void {
    if (!listener.isStopped) void this.#drains.stopAccepting([listener], { acceptRest: !hasSuccessor, hasSuccessor });
    // The backlog belongs to the child process.
    else if (listener.isSuspended) void this.#drains.stopAccepting([listener], { acceptRest: false, hasSuccessor });
    this.#add(listener, undefined);
  }

  /** Called when the child process that had taken over is dead. Removes what has exceeded its drain time meanwhile. */
  reclaim(): void {
    const now = monotonicMs();
    this.#remove([...this.#entries].filter(({ window }) => window.startMs + window.timeMs <= now));
  }

  /** Adds chains that receive no further connections. */
  addChains(listener: PrimaryListener, chains: readonly PrimaryChain[]): void {
    for (const chain of chains) this.#add(listener, chain);
  }

  /** Oldest first. */
  get all(): Iterable<DrainingItem> {
    return this.#entries;
  }

  *listeners(): Generator<PrimaryListener> {
    for (const { chain, listener } of this.#entries) if (chain === undefined) yield listener;
  }

  get chainCount(): number {
    let count = 0;
    for (const { chain } of this.#entries) if (chain !== undefined) count++;
    return count;
  }

  get listenerCount(): number {
    return this.#entries.size - this.chainCount;
  }

  /** Calls `callback` once, when everything that drains now is gone; immediately when nothing drains. */
  whenGone(callback: () => void): void {
    if (this.#entries.size === 0) callback();
    else this.#waiting.push({ entries: new Set(this.#entries), callback });
  }

  /** Cancels all drains, and closes the sockets of the versions. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#checkTimer);
    for (const { drain, listener } of this.#entries) {
      drain.cancel();
      listener.close();
    }
  }

  #add(listener: PrimaryListener, chain: PrimaryChain | undefined): void {
    const { id } = chain ?? listener;
    const drain = this.#drains.drainReplaced(id, () => this.#remove([entry]));
    const entry: Entry = { id, listener, chain, drain, window: drain.window, isEmpty: false };
    this.#entries.add(entry);
    this.#drains.count();
    if (this.#entries.size > KEPT_EMPTY) this.#checkTimer ??= setTimeout(() => void this.#removeEmpty(), CHECK_MS);
  }

  #remove(entries: readonly Entry[]): void {
    // After a take-over, connections may still be in transit to the child process.
    if (this.#isClosed || this.#takeOver.isDone) return;
    const removed: Entry[] = [];
    for (const entry of entries) {
      // The chains of a version are removed with it.
      const chains = [...this.#entries].filter(
        ({ chain, listener }) => entry.chain === undefined && chain !== undefined && listener === entry.listener,
      );
      for (const each of [entry, ...chains]) if (this.#entries.delete(each)) removed.push(each);
    }
    for (const { drain } of removed) drain.cancel();
    this.#rollout.remove(removed.map(({ chain, listener }) => chain ?? listener));
    this.#drains.count();
    this.#notifyGone(removed);
  }

  #notifyGone(removed: readonly Entry[]): void {
    for (const { entries } of this.#waiting) for (const entry of removed) entries.delete(entry);
    const gone = this.#waiting.filter(({ entries }) => entries.size === 0);
    this.#waiting = this.#waiting.filter(({ entries }) => entries.size > 0);
    forEachGuarded(gone, 'internal error: a callback for drained listeners failed', ({ callback }) => callback());
  }

  /** Removes those that were empty at this check and the one before: what was pending at a socket has been accepted since. */
  async #removeEmpty(): Promise<void> {
    try {
      const open = await this.#drains.openConnections();
      const excess = this.#entries.size - KEPT_EMPTY;
      const empty: Entry[] = [];
      for (const entry of this.#entries) {
        // Some may have been removed during the wait, so that fewer remain than are kept.
        if (empty.length >= excess) break;
        const wasEmpty = entry.isEmpty;
        entry.isEmpty = open.isComplete && (open.listeners.get(entry.id)?.connections ?? 0) === 0;
        if (wasEmpty && entry.isEmpty) empty.push(entry);
      }
      if (empty.length > 0) this.#remove(empty);
    } catch (error) {
      internalError('internal error: draining listeners could not be checked', error);
    }
    this.#checkTimer = undefined;
    if (!this.#isClosed && this.#entries.size > KEPT_EMPTY) {
      this.#checkTimer = setTimeout(() => void this.#removeEmpty(), CHECK_MS);
    }
  }
}

interface Entry extends DrainingItem {
  readonly drain: ReplacementDrain;
  isEmpty: boolean;
}
