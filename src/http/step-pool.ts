// Objects that are used again, the last one given back first, because its memory is still in the processor's cache. What is given back
// while one event is handled is taken again while a later one is: callers further up the stack may still hold it until then.

import type { Memory } from '../io/memory.js';

export class StepPool<T> {
  readonly #memory: Memory;
  readonly #make: () => T;
  readonly #free: T[] = [];
  /** Given back in step #restingStep. */
  readonly #resting: T[] = [];
  #restingStep = -1;

  constructor(memory: Memory, make: () => T) {
    this.#memory = memory;
    this.#make = make;
  }

  take(): T {
    if (this.#restingStep !== this.#memory.step) this.#wake();
    return this.#free.pop() ?? this.#make();
  }

  giveBack(item: T): void {
    const { step } = this.#memory;
    if (this.#restingStep !== step) {
      this.#wake();
      this.#restingStep = step;
    }
    this.#resting.push(item);
  }

  #wake(): void {
    while (this.#resting.length > 0) this.#free.push(this.#resting.pop()!);
  }
}
