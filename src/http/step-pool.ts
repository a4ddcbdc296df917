// A pool of reusable objects. It is LIFO, because the memory of the last released object is still in the processor's cache. An object that
// is released during one event is reused only in a later event: callers further up the stack may hold it until then.

import type { Memory } from '../io/memory.js';

export class StepPool<T> {
  readonly #memory: Memory;
  readonly #make: () => T;
  /** The first #ready of #count can be taken; the rest were released in step #step. */
  readonly #items: T[] = [];
  #count = 0;
  #ready = 0;
  #step = -1;

  constructor(memory: Memory, make: () => T) {
    this.#memory = memory;
    this.#make = make;
  }

  take(): T {
    this.#sync();
    if (this.#ready === 0) return this.#make();
    const item = this.#items[--this.#ready]!;
    this.#items[this.#ready] = this.#items[--this.#count]!;
    return item;
  }

  release(item: T): void {
    this.#sync();
    this.#items[this.#count++] = item;
  }

  #sync(): void {
    const { step } = this.#memory;
    if (step === this.#step) return;
    this.#step = step;
    this.#ready = this.#count;
  }
}
