// Versions of listeners, and filter chains, that an update has left: their connections are asked to end, for a time, and then
// they are closed. What workers and the stats keep for them is given back.

import type { DrainWindow } from '../../listener/drain-window.js';
import { Level } from '../../log/levels.js';
import { getLogger } from '../../log/logger.js';
import type { LeavingDrain } from '../draining/drain-manager.js';
import type { ListenerDrains } from '../draining/listener-drains.js';
import type { Primary } from '../primary.js';
import type { Publish } from '../workers/snapshots.js';
import type { PrimaryChain } from './primary-chain.js';
import type { PrimaryListener } from './primary-listener.js';

/** What has been left. */
export interface Former {
  readonly listener: PrimaryListener;
  /** Undefined: the whole version. */
  readonly chain: PrimaryChain | undefined;
  readonly window: DrainWindow;
}

/** So many stay until their time is over though nobody is connected: to be seen. Further ones go when they are empty. */
const KEPT_EMPTY = 16;
/** How often it is looked whether there are such. */
const LOOK_MS = 2000;

const logger = getLogger('main');

export class FormerListeners {
  readonly #primary: Primary;
  readonly #drains: ListenerDrains;
  readonly #publish: Publish;
  readonly #formers = new Set<Leaving>();
  #waiting: { readonly formers: Set<Leaving>; readonly callback: () => void }[] = [];
  #look: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(primary: Primary, drains: ListenerDrains, publish: Publish) {
    this.#primary = primary;
    this.#drains = drains;
    this.#publish = publish;
  }

  /** A version that accepts no longer, or soon. */
  addListener(listener: PrimaryListener): void {
    this.#add(listener, undefined);
  }

  /** Chains that take no more connections. */
  addChains(listener: PrimaryListener, chains: readonly PrimaryChain[]): void {
    for (const chain of chains) this.#add(listener, chain);
  }

  /** In the order in which they were left. */
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

  /** Calls back, once, when all that drain now are gone; at once when there are none. */
  whenGone(callback: () => void): void {
    if (this.#formers.size === 0) callback();
    else this.#waiting.push({ formers: new Set(this.#formers), callback });
  }

  /** Nothing more happens. The sockets of versions are closed. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#look);
    for (const { drain, listener } of this.#formers) {
      drain.cancel();
      listener.close();
    }
  }

  #add(listener: PrimaryListener, chain: PrimaryChain | undefined): void {
    const drain = this.#drains.leave([chain?.id ?? listener.id], () => this.#remove([former]));
    const former: Leaving = { listener, chain, drain, window: drain.window, isEmpty: false };
    this.#formers.add(former);
    this.#drains.count();
    if (this.#formers.size > KEPT_EMPTY) this.#look ??= setTimeout(() => void this.#removeEmpty(), LOOK_MS);
  }

  #remove(formers: readonly Leaving[]): void {
    // Connections may be on their way to a child process when that has taken over.
    if (this.#isClosed || this.#primary.takeOver.isDone) return;
    const removed: Leaving[] = [];
    for (const former of formers) {
      // A chain of a version that goes as a whole goes with it.
      const chains = [...this.#formers].filter(
        ({ chain, listener }) => former.chain === undefined && chain !== undefined && listener === former.listener,
      );
      for (const each of [former, ...chains]) if (this.#formers.delete(each)) removed.push(each);
    }
    for (const { drain } of removed) drain.cancel();
    const listeners = removed.filter(({ chain }) => chain === undefined).map(({ listener }) => listener);
    const chains = removed.flatMap(({ chain }) => chain ?? []);
    this.#publish({
      removedListeners: listeners.map(({ id }) => id),
      removedChains: chains.map(({ id }) => id),
      removedScopes: [
        ...listeners.flatMap((listener) => listener.retire()),
        ...chains.flatMap(({ scopes }) => scopes.retire()),
      ],
    });
    this.#primary.snapshots.whenApplied(() => {
      for (const chain of chains) chain.free();
      for (const listener of listeners) listener.free();
    });
    this.#drains.count();
    this.#tellGone(removed);
  }

  #tellGone(removed: readonly Leaving[]): void {
    for (const { formers } of this.#waiting) for (const former of removed) formers.delete(former);
    const gone = this.#waiting.filter(({ formers }) => formers.size === 0);
    this.#waiting = this.#waiting.filter(({ formers }) => formers.size > 0);
    for (const { callback } of gone) callback();
  }

  /** Those that nobody is connected to, and was not when it was looked last: what a socket held is accepted by then. */
  async #removeEmpty(): Promise<void> {
    try {
      const open = await this.#drains.openConnections();
      const most = this.#formers.size - KEPT_EMPTY;
      const empty: Leaving[] = [];
      for (const former of this.#formers) {
        if (empty.length === most) break;
        const wasEmpty = former.isEmpty;
        const id = former.chain?.id ?? former.listener.id;
        former.isEmpty = open.isComplete && (open.listeners.get(id)?.connections ?? 0) === 0;
        if (wasEmpty && former.isEmpty) empty.push(former);
      }
      if (empty.length > 0) this.#remove(empty);
    } catch (error) {
      logger.exception(Level.Error, 'listeners that drain cannot be looked at', error);
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
