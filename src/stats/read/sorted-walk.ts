// Walks all stats of one pass in the order of their full dotted names, one at a time.
//
// Sections are sorted by prefix, and tables by name. Where prefixes nest (`cluster.a.` and `cluster.a.circuit_breakers.`),
// the walk finds how many names of a section precede the next name of another: nothing is sorted, no list of names is built,
// and names are compared once per run.

import type { Pass, Section, StatTable } from './section.js';

export class SortedWalk {
  /** The current stat, after next() returned true. */
  section!: Section;
  table!: StatTable;
  index = -1;
  readonly #sections: readonly Section[];
  readonly #pass: Pass;
  #next = 0;
  /** Sections that have begun and have names left. */
  readonly #open: OpenSection[] = [];
  /** The section of the current run, and the index at which the run ends. */
  #current: OpenSection | undefined;
  #runEnd = 0;

  constructor(sections: readonly Section[], pass: Pass) {
    this.#sections = sections;
    this.#pass = pass;
  }

  /** Moves to the next stat; returns false at the end. */
  next(): boolean {
    if (++this.index < this.#runEnd) return true;
    const current = this.#current;
    if (current !== undefined && !current.goTo(this.#runEnd)) this.#open.splice(this.#open.indexOf(current), 1);
    const first = this.#first();
    this.#current = first;
    if (first === undefined) {
      this.#runEnd = this.index = 0;
      return false;
    }
    this.section = first.section;
    this.table = first.table;
    this.index = first.index;
    this.#runEnd = first.runUpTo(this.#smallestOther(first));
    return true;
  }

  /** Returns the open section with the smallest name. First opens those whose prefix is not greater than that name. */
  #first(): OpenSection | undefined {
    let first: OpenSection | undefined;
    for (const open of this.#open) if (first === undefined || open.head < first.head) first = open;
    for (;;) {
      const section = this.#sections[this.#next];
      if (section === undefined || (first !== undefined && section.prefix > first.head)) return first;
      this.#next++;
      const table = section.tables[this.#pass];
      if (table.length === 0) continue;
      const open = new OpenSection(section, table);
      this.#open.push(open);
      if (first === undefined || open.head < first.head) first = open;
    }
  }

  /** Returns the smallest possible name of another section: of an open one, or the prefix of the next one. */
  #smallestOther(first: OpenSection): string | undefined {
    let smallest = this.#sections[this.#next]?.prefix;
    for (const open of this.#open) {
      if (open !== first && (smallest === undefined || open.head < smallest)) smallest = open.head;
    }
    return smallest;
  }
}

class OpenSection {
  readonly section: Section;
  readonly table: StatTable;
  index = 0;
  /** Full name of the stat at `index`. */
  head: string;

  constructor(section: Section, table: StatTable) {
    this.section = section;
    this.table = table;
    this.head = section.prefix + table.names[0]!;
  }

  /** Moves to a later stat; returns false if there is none. */
  goTo(index: number): boolean {
    if (index >= this.table.length) return false;
    this.index = index;
    this.head = this.section.prefix + this.table.names[index]!;
    return true;
  }

  /** Returns the index of the first stat after this one whose full name is not smaller than `limit`. */
  runUpTo(limit: string | undefined): number {
    const { prefix } = this.section;
    if (limit === undefined || !limit.startsWith(prefix)) return this.table.length;
    const rest = limit.slice(prefix.length);
    let low = this.index + 1;
    let high = this.table.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.table.names[middle]! < rest) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
