// The value of every counter at the last two flushes, from which sinks get deltas.
//
// Latched values count since the start of the process: neither a reset nor the death of a worker changes them. They exist
// only while a sink is configured: two numbers per counter, found by the scope's record or by prefix.

import { Kind } from '../layout.js';
import type { StatsReader } from '../read/reader.js';
import { Pass, type Section, type StatTable } from '../read/section.js';

/** Counters per step. */
const COUNTERS_PER_STEP = 4096;
/** New sections per step: each needs memory and map entries. */
const SECTIONS_PER_STEP = 512;

/** The counters of a section by their index in the table: the values of the last flush, then those of the flush before. */
interface Latch {
  readonly tag: number;
  readonly table: StatTable;
  readonly values: Float64Array;
}

/** An amount of a counter that is excluded from its next delta. */
export interface CounterCredit {
  /** Full name. */
  readonly name: string;
  readonly amount: number;
  /** Whether `amount` is the total of all excluded amounts, and not an additional one. */
  readonly isTotal?: boolean;
}

export class CounterLatches {
  #byScope = new Map<number, Latch>();
  #byPrefix = new Map<string, Latch>();
  #latches = new Map<Section, Latch>();
  #sections: readonly Section[] = [];

  /**
   * Latches the counters of these sections for a flush; `credits` are excluded from the deltas. Yields after about a
   * thousand counters.
   */
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

  /** Returns the count since the start of the process, as of the last flush. */
  value(section: Section, index: number): number {
    return this.#latches.get(section)?.values[index] ?? 0;
  }

  /** Returns the count between the last two flushes. */
  delta(section: Section, index: number): number {
    const latch = this.#latches.get(section);
    if (latch === undefined) return 0;
    const value = latch.values[index]!;
    const before = latch.values[latch.table.length + index]!;
    // A name that was removed and added again counts from 0.
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
  // New names appeared under the prefix: the latches of the old ones are kept.
  if (isSame) carryOver(known, table, values);
  return { tag, table, values };
}

/** Copies the values of the last flush; latch() writes the others. */
function carryOver(known: Latch, table: StatTable, values: Float64Array): void {
  table.names.forEach((name, i) => {
    const before = known.table.indexOf(name);
    if (before >= 0) values[i] = known.values[before]!;
  });
}
