// Objects that are used again, the last one given back first, because its memory is still in the processor's cache. What is given back
// while one event is handled is taken again while a later one is: callers further up the stack may still hold it until then.

import type { Memory } from '../io/memory.js';

export class StepPool<T> {
  readonly #memory: Memory;
  readonly #make: () => T;
  /** The first #ready of #count can be taken; the rest was given back in step #step. */
  readonly #items: T[] = [];
  #count = 0;
  #ready = 0;
  #step = -1;

  constructor(memory: Memory, make: () => T) {
    this.#memory = memory;
    this.#make = make;
  }

  take(): T {
    this.#look();
    if (this.#ready === 0) return this.#make();
    const item = this.#items[--this.#ready]!;
    this.#items[this.#ready] = this.#items[--this.#count]!;
    return item;
  }

  giveBack(item: T): void {
    this.#look();
    this.#items[this.#count++] = item;
  }

  #look(): void {
    const { step } = this.#memory;
    if (step === this.#step) return;
    this.#step = step;
    this.#ready = this.#count;
  }
}
