// Which names were looked up as strings: a count always, the names themselves only when somebody asks to collect them.
//
// A string is looked up when the primary adds a scope or asks for a stat by its name, and when a thread first counts under a
// name that traffic brings. A count is one addition; the names that workers bring are read from the directory.

import { CONTROL_WORDS, Control } from './memory/format.js';

export interface LookedUp {
  readonly name: string;
  readonly count: number;
}

/** How many names are kept: the least recent ones make room. */
const CAPACITY = 100;

export class RecentLookups {
  /** Brings names of other threads that were not seen yet. */
  readonly #sync: () => void;
  readonly #control: Int32Array;
  readonly #threads: number;
  /** Counts by name, the least recent first; undefined while nothing is collected. */
  #names: Map<string, number> | undefined;
  /** Lookups of the store itself, less those before the last clear() of all threads. */
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
    return this.#count + this.#ofThreads();
  }

  /** The collected names, rarest first, those of one count by name. */
  entries(): LookedUp[] {
    this.#sync();
    return Array.from(this.#names ?? [], ([name, count]) => ({ name, count })).sort(
      (a, b) => a.count - b.count || (a.name < b.name ? -1 : 1),
    );
  }

  enable(): void {
    this.#sync();
    this.#names ??= new Map();
  }

  /** Forgets the names; the count goes on. */
  disable(): void {
    this.#names = undefined;
  }

  /** Forgets the names and the count; collecting goes on if it is enabled. */
  clear(): void {
    this.#sync();
    this.#names?.clear();
    this.#count = -this.#ofThreads();
  }

  /** A lookup by the store. */
  count(name: string): void {
    this.#count++;
    if (this.#names !== undefined) this.collect(name);
  }

  /** Keeps the name of a lookup that is counted elsewhere. */
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

  #ofThreads(): number {
    let sum = 0;
    for (let thread = 0; thread < this.#threads; thread++) {
      sum += Atomics.load(this.#control, thread * CONTROL_WORDS + Control.Lookups) >>> 0;
    }
    return sum;
  }
}
