// Names that were looked up as strings: always counted, and collected only on request.
//
// The primary looks up a string when it adds a scope or reads a stat by name. A thread does when it first uses a name that
// traffic creates. Counting is one addition; names of workers are read from the directory.

import { CONTROL_WORDS, Control } from './memory/format.js';

export interface LookupCount {
  readonly name: string;
  readonly count: number;
}

/** Maximum number of names; the least recent ones are evicted. */
const CAPACITY = 100;

export class RecentLookups {
  /** Reads new names of other threads. */
  readonly #sync: () => void;
  readonly #control: Int32Array;
  readonly #threads: number;
  /** Counts by name, the least recent first; undefined while nothing is collected. */
  #names: Map<string, number> | undefined;
  /** Lookups of the store, minus those of all threads before the last clear(). */
  #count = 0;

  constructor(control: SharedArrayBuffer, threads: number, sync: () => void) {
    this.#control = new Int32Array(control);
    this.#threads = threads;
    this.#sync = sync;
  }

  get isEnabled(): boolean {
    return this.#names !== undefined;
  }

  /** Lookups since start or the last clear(), collected or not. */
  get total(): number {
    return this.#count + this.#threadLookups();
  }

  /** Returns the collected names by ascending count, then by name. */
  entries(): LookupCount[] {
    this.#sync();
    return Array.from(this.#names ?? [], ([name, count]) => ({ name, count })).sort(
      (a, b) => a.count - b.count || (a.name < b.name ? -1 : 1),
    );
  }

  enable(): void {
    this.#sync();
    this.#names ??= new Map();
  }

  /** Drops the names; counting continues. */
  disable(): void {
    this.#names = undefined;
  }

  /** Drops the names and the count; collecting continues if it is enabled. */
  clear(): void {
    this.#sync();
    this.#names?.clear();
    this.#count = -this.#threadLookups();
  }

  /** Counts a lookup by the store. */
  count(name: string): void {
    this.#count++;
    if (this.#names !== undefined) this.collect(name);
  }

  /** Collects the name of a lookup that is counted elsewhere. */
  collect(name: string): void {
    const names = this.#names;
    if (names === undefined) return;
    const key = name.endsWith('.') ? name.slice(0, -1) : name;
    const count = names.get(key) ?? 0;
    names.delete(key);
    names.set(key, count + 1);
    if (names.size <= CAPACITY) return;
    for (const oldest of names.keys()) {
      names.delete(oldest);
      return;
    }
  }

  #threadLookups(): number {
    let sum = 0;
    for (let thread = 0; thread < this.#threads; thread++) {
      sum += Atomics.load(this.#control, thread * CONTROL_WORDS + Control.Lookups) >>> 0;
    }
    return sum;
  }
}
