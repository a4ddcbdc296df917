// A limit on the connections of all workers together, which runtime may set at any time, or the configuration once and for all.
//
// Workers count together only while there is a limit: each knows its own number anyway, and adds it when one is set.

import type { RuntimeInteger } from '../runtime/runtime.js';

/** Words that threads count in together. */
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

/** What a limit is while nobody has set one. */
export const UNLIMITED = Number.MAX_SAFE_INTEGER;

export class ConnectionLimit {
  readonly #words: SharedCount;
  readonly #word: number;
  readonly #limit: RuntimeInteger;
  readonly #refused: (() => void) | undefined;
  /** Connections of this worker. */
  #held = 0;
  #isCounting = false;

  /** `limit` is UNLIMITED while there is none. `refused` is told of each connection beyond it. */
  constructor(words: SharedCount, word: number, limit: RuntimeInteger, refused?: () => void) {
    this.#words = words;
    this.#word = word;
    this.#limit = limit;
    this.#refused = refused;
    this.update();
  }

  /** Runtime may have changed. */
  update(): void {
    const isCounting = this.#limit.value < UNLIMITED;
    if (isCounting === this.#isCounting) return;
    this.#isCounting = isCounting;
    this.#words.add(this.#word, isCounting ? this.#held : -this.#held);
  }

  /** Whether one more connection is allowed; it counts then until release(). */
  tryAcquire(): boolean {
    if (this.#isCounting && !this.#words.tryAcquire(this.#word, Math.min(this.#limit.value, LARGEST))) {
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

const LARGEST = 2 ** 31 - 1;
