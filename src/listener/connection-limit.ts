// A limit on the connections of all workers together. The configuration sets it permanently, or runtime at any time.
//
// Workers share a count only while there is a limit: each counts its own connections anyway, and adds them when a limit is set.

import type { RuntimeInteger } from '../runtime/runtime.js';

/** Counters that threads share. */
export interface SharedCount {
  /** Adds 1 if the sum of all threads is below `limit`. */
  tryAcquire(index: number, limit: number): boolean;
  /** Adds `count`, which may be negative. */
  add(index: number, count: number): void;
  /** Subtracts 1. */
  release(index: number): void;
}

/** Runtime key of the limit of all connections of the process. */
export const GLOBAL_CONNECTION_LIMIT = 'overload.global_downstream_max_connections';

/** The value of a limit that is not set. */
export const UNLIMITED = Number.MAX_SAFE_INTEGER;

export class ConnectionLimit {
  readonly #words: SharedCount;
  readonly #word: number;
  readonly #limit: RuntimeInteger;
  readonly #refused: (() => void) | undefined;
  /** Connections of this worker. */
  #held = 0;
  #isCounting = false;

  /** `limit` is UNLIMITED while there is none. `refused` is called for each connection beyond it. */
  constructor(words: SharedCount, word: number, limit: RuntimeInteger, refused?: () => void) {
    this.#words = words;
    this.#word = word;
    this.#limit = limit;
    this.#refused = refused;
    this.update();
  }

  /** Called when runtime may have changed. */
  update(): void {
    const isCounting = this.#limit.value < UNLIMITED;
    if (isCounting === this.#isCounting) return;
    this.#isCounting = isCounting;
    this.#words.add(this.#word, isCounting ? this.#held : -this.#held);
  }

  /** Counts one more connection until release(). Returns false if the limit is reached. */
  tryAcquire(): boolean {
    if (this.#isCounting && !this.#words.tryAcquire(this.#word, Math.min(this.#limit.value, MAX_INT32))) {
      this.#refused?.();
      return false;
    }
    this.#held++;
    return true;
  }

  release(): void {
    this.#held--;
    if (this.#isCounting) this.#words.release(this.#word);
  }
}

const MAX_INT32 = 2 ** 31 - 1;
