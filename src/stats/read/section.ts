// The directory as readers walk it: sections, each a prefix with tables of sorted names.

import { Kind, type StatEntry, type Unit } from '../layout.js';

/** The three passes of every rendering, in order. */
export const enum Pass {
  Texts = 0,
  /** Counters and gauges together. */
  Values = 1,
  Histograms = 2,
}

export type Tables = readonly [StatTable, StatTable, StatTable];

/** A prefix and its stats: the block of a scope, or names that traffic created. */
export interface Section {
  readonly prefix: string;
  /** Not shown unless hidden stats are requested. */
  readonly hidden: boolean;
  /** Tables by Pass. */
  readonly tables: Tables;
  /** Position of the block; unused with `parts`. */
  readonly chunk: number;
  readonly base: number;
  /** The scope's record, and its tag when it was read. */
  readonly place: number;
  readonly tag: number;
  /** For names that traffic created: the stats to which the tables' `at` refers. */
  readonly parts: readonly DynamicStat[] | undefined;
}

/** A name that traffic created, merged over the threads that have it. */
export interface DynamicStat {
  readonly name: string;
  readonly kind: Kind;
  readonly unit: Unit;
  readonly threads: number[];
  readonly places: number[];
  readonly tags: number[];
}

/** Stats of one pass under one prefix, in the order of their names. */
export class StatTable {
  readonly names: readonly string[];
  readonly kinds: Uint8Array;
  readonly units: readonly Unit[];
  /** Whether a gauge includes the parent process's value. */
  readonly imports: readonly boolean[];
  /** Slot in the block, or index in the section's parts. */
  readonly at: Int32Array;
  readonly #entries: readonly StatEntry[];
  #bytes: Uint8Array[] | undefined;
  #indexes: Map<string, number> | undefined;

  /** @param entries in any order */
  constructor(entries: readonly StatEntry[]) {
    const sorted = [...entries].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    this.#entries = sorted;
    this.names = sorted.map((entry) => entry.name);
    this.kinds = Uint8Array.from(sorted, (entry) => entry.kind);
    this.units = sorted.map((entry) => entry.unit);
    this.imports = sorted.map((entry) => entry.imports);
    this.at = Int32Array.from(sorted, (entry) => entry.at);
  }

  get length(): number {
    return this.names.length;
  }

  /** The names in UTF-8, encoded on first use. */
  get bytes(): readonly Uint8Array[] {
    this.#bytes ??= this.names.map((name) => Buffer.from(name));
    return this.#bytes;
  }

  /** Returns a table of some of these stats. */
  only(isIncluded: (index: number) => boolean): StatTable {
    return new StatTable(this.#entries.filter((_entry, index) => isIncluded(index)));
  }

  /** Returns the index of a name; -1 if it is not in the table. */
  indexOf(name: string): number {
    this.#indexes ??= new Map(this.names.map((known, index) => [known, index]));
    return this.#indexes.get(name) ?? -1;
  }
}

/** Returns the tables of a layout, shared by all its scopes. */
export function layoutTables(entries: readonly StatEntry[]): Tables {
  return [
    new StatTable(entries.filter((entry) => entry.kind === Kind.Text)),
    new StatTable(entries.filter((entry) => entry.kind === Kind.Counter || entry.kind === Kind.Gauge)),
    new StatTable(entries.filter((entry) => entry.kind === Kind.Histogram)),
  ];
}

/** Returns these tables, each replaced by `select`. */
export function selectTables(tables: Tables, select: (table: StatTable) => StatTable): Tables {
  return [select(tables[0]), select(tables[1]), select(tables[2])];
}

/**
 * Returns the section of names that traffic created under a prefix. `known` caches tables, which many such sections share.
 */
export function dynamicSection(prefix: string, stats: readonly DynamicStat[], known: Map<string, Tables>): Section {
  const parts = [...stats].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const signature = parts.map(({ name, kind, unit }) => `${kind}${unit}:${name}`).join('\n');
  let tables = known.get(signature);
  if (tables === undefined) {
    const entries = parts.map(({ name, kind, unit }, at) => ({ name, kind, unit, imports: kind === Kind.Gauge, at }));
    known.set(signature, (tables = layoutTables(entries)));
  }
  return { prefix, hidden: false, tables, chunk: 0, base: 0, place: 0, tag: 0, parts };
}
