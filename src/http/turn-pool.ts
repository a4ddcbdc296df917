// Objects that are used again: what is given back in one turn is taken again in a later one at the earliest, because
// callers further up the stack may still hold it until the turn ends.

import type { Memory } from '../io/memory.js';

export class TurnPool<T> {
  readonly #memory: Memory;
  readonly #make: () => T;
  #free: T[] = [];
  #retired: T[] = [];
  #retiredTurn = -1;

  constructor(memory: Memory, make: () => T) {
    this.#memory = memory;
    this.#make = make;
  }

  take(): T {
    if (this.#free.length === 0 && this.#retired.length > 0 && this.#retiredTurn !== this.#memory.turn) {
      const empty = this.#free;
      this.#free = this.#retired;
      this.#retired = empty;
    }
    return this.#free.pop() ?? this.#make();
  }

  giveBack(item: T): void {
    if (this.#retiredTurn !== this.#memory.turn) {
      let earlier: T | undefined;
      while ((earlier = this.#retired.pop()) !== undefined) this.#free.push(earlier);
      this.#retiredTurn = this.#memory.turn;
    }
    this.#retired.push(item);
  }
}
