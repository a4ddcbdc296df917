// What every counter stood at at the last two flushes: the deltas that sinks are given.
//
// Latches hold what was counted since the process began, which neither a reset nor the death of a worker changes. They
// exist only while a sink is configured: two numbers a counter, found again by the record of its scope or by its prefix.

import { Kind } from '../layout.js';
import type { StatsReader } from '../read/reader.js';
import { Pass, type Section, type StatTable } from '../read/section.js';

/** Counters that one step looks at. */
const COUNTERS_PER_STEP = 4096;
/** Sections that one step begins to follow: each needs memory and places in maps. */
const SECTIONS_PER_STEP = 512;

/** The counters of a section: [at the last flush …, at the one before …], by index in the table. */
interface Latch {
  readonly tag: number;
  readonly table: StatTable;
  readonly values: Float64Array;
}

/** What a counter has that is in no delta. */
export interface CounterCredit {
  /** Full. */
  readonly name: string;
  readonly amount: number;
  /** The amount is all that the counter has in no delta, rather than more of that. */
  readonly isTotal?: boolean;
}

export class CounterLatches {
  #byScope = new Map<number, Latch>();
  #byPrefix = new Map<string, Latch>();
  #latches = new Map<Section, Latch>();
  #sections: readonly Section[] = [];

  /** The counters of these sections become those of the last flush, with `credits` left out; a thousand or so at a time. */
  *latch(
    reader: StatsReader,
    sections: readonly Section[],
    credits: readonly CounterCredit[] = [],
  ): Generator<void, void> {
    if (sections !== this.#sections) yield* this.#follow(sections);
    for (const credit of credits) this.#credit(reader, credit);
    let looked = 0;
    for (const [section, { table, values }] of this.#latches) {
      if (!reader.isLive(section)) continue;
      const { kinds, length } = table;
      for (let i = 0; i < length; i++) {
        if (kinds[i] !== Kind.Counter) continue;
        values[length + i] = values[i]!;
        values[i] = reader.total(section, table, i);
      }
      looked += length;
      if (looked < COUNTERS_PER_STEP) continue;
      looked = 0;
      yield;
    }
  }

  /** What was counted since the process began, as of the last flush. */
  value(section: Section, index: number): number {
    return this.#latches.get(section)?.values[index] ?? 0;
  }

  /** What was counted between the last two flushes. */
  delta(section: Section, index: number): number {
    const latch = this.#latches.get(section);
    if (latch === undefined) return 0;
    const value = latch.values[index]!;
    const before = latch.values[latch.table.length + index]!;
    // A name that went away and came back counts from 0.
    return value < before ? value : value - before;
  }

  #credit(reader: StatsReader, { amount, isTotal = false, name }: CounterCredit): void {
    const found = reader.find(name);
    const latch = found && this.#latches.get(found.section);
    if (latch === undefined) return;
    const { index } = found!;
    const before = latch.values[index]!;
    latch.values[index] = isTotal ? Math.max(before, amount) : before + amount;
  }

  *#follow(sections: readonly Section[]): Generator<void, void> {
    const byScope = new Map<number, Latch>();
    const byPrefix = new Map<string, Latch>();
    const latches = new Map<Section, Latch>();
    let looked = 0;
    for (const section of sections) {
      const table = section.tables[Pass.Values];
      if (section.hidden || table.length === 0) continue;
      const isScope = section.parts === undefined;
      const known = isScope ? this.#byScope.get(section.place) : this.#byPrefix.get(section.prefix);
      const latch = latchFor(section, table, known);
      latches.set(section, latch);
      if (isScope) byScope.set(section.place, latch);
      else byPrefix.set(section.prefix, latch);
      if (++looked % SECTIONS_PER_STEP === 0) yield;
    }
    this.#byScope = byScope;
    this.#byPrefix = byPrefix;
    this.#latches = latches;
    this.#sections = sections;
  }
}

function latchFor({ tag }: Section, table: StatTable, known: Latch | undefined): Latch {
  const isSame = known !== undefined && known.tag === tag;
  if (isSame && known.table === table) return known;
  const values = new Float64Array(2 * table.length);
  // Traffic has brought further names under the prefix: those that were there go on.
  if (isSame) carryOver(known, table, values);
  return { tag, table, values };
}

/** What they stood at at the last flush; latch() writes the rest. */
function carryOver(known: Latch, table: StatTable, values: Float64Array): void {
  table.names.forEach((name, i) => {
    const before = known.table.indexOf(name);
    if (before >= 0) values[i] = known.values[before]!;
  });
}
