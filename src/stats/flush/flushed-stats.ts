// The stats of one flush for sinks: counters with deltas, gauges, and histograms of the interval, without hidden stats.
// Sinks visit them one at a time. Nothing is copied: a stat is read when the sink reads its properties.

import type { Distribution } from '../histograms/distribution.js';
import type { HistogramValue } from '../histograms/merged-histogram.js';
import type { Kind, Unit } from '../layout.js';
import type { StatsReader } from '../read/reader.js';
import { Pass, type Section, type StatTable } from '../read/section.js';
import type { TaggedName } from '../tags.js';
import type { CounterLatches } from './counter-latches.js';

export interface FlushTimes {
  /** Start of the period that counters cover, in milliseconds since 1970; it may precede the start of the process. */
  readonly countedSinceMs: number;
  /** Start of the process, previous flush and this flush, in milliseconds since 1970. */
  readonly startMs: number;
  readonly previousMs: number;
  readonly nowMs: number;
}

/** Stats examined per step, used or not. A section is examined as a whole. */
const LOOKS_PER_STEP = 4096;

export class FlushedStats {
  readonly times: FlushTimes;
  readonly #reader: StatsReader;
  readonly #sections: readonly Section[];
  readonly #latches: CounterLatches;

  /** `latches` must have latched these sections for this flush. */
  constructor(reader: StatsReader, sections: readonly Section[], latches: CounterLatches, times: FlushTimes) {
    this.#reader = reader;
    this.#sections = sections;
    this.#latches = latches;
    this.times = times;
  }

  /**
   * Visits counters that were ever incremented and gauges that were ever changed, in one sequence. A stat is valid until the
   * next one is visited. Yields after every `perStep` stats, and when many unused stats were examined.
   */
  eachValue(perStep: number, visit: (stat: FlushedStat) => void): Generator<void, void> {
    return this.#walk(Pass.Values, perStep, visit);
  }

  /** Visits histograms that ever had a sample, as eachValue() does. */
  eachHistogram(perStep: number, visit: (stat: FlushedStat) => void): Generator<void, void> {
    return this.#walk(Pass.Histograms, perStep, visit);
  }

  /** Returns the count of the counter with this full name since the start of the process; 0 if there is none. */
  counter(name: string): number {
    const found = this.#reader.find(name);
    return found === undefined ? 0 : this.#reader.total(found.section, found.table, found.index);
  }

  /**
   * Returns the samples that the histogram with this full name recorded since the previous flush; undefined if it never had
   * any.
   */
  interval(name: string): Distribution | undefined {
    const found = this.#reader.find(name);
    return found && this.#reader.histogram(found.section, found.table, found.index)?.interval;
  }

  *#walk(pass: Pass, perStep: number, visit: (stat: FlushedStat) => void): Generator<void, void> {
    const reader = this.#reader;
    const stat = new FlushedStat(reader, this.#latches);
    let left = perStep;
    let looks = LOOKS_PER_STEP;
    for (const section of this.#sections) {
      const table = section.tables[pass];
      const length = section.hidden || table.length === 0 || !reader.isLive(section) ? 0 : table.length;
      for (let index = 0; index < length; index++) {
        if (!reader.isUsed(section, table, index)) continue;
        stat.moveTo(section, table, index);
        visit(stat);
        left--;
      }
      looks -= length + 1;
      if (left > 0 && looks > 0) continue;
      left = perStep;
      looks = LOOKS_PER_STEP;
      yield;
    }
  }
}

/** The current stat of a walk. */
export class FlushedStat {
  readonly #reader: StatsReader;
  readonly #latches: CounterLatches;
  #section!: Section;
  #table!: StatTable;
  #index = 0;

  constructor(reader: StatsReader, latches: CounterLatches) {
    this.#reader = reader;
    this.#latches = latches;
  }

  /** Called by the walk. */
  moveTo(section: Section, table: StatTable, index: number): void {
    this.#section = section;
    this.#table = table;
    this.#index = index;
  }

  /** The full name. */
  get name(): string {
    return this.#section.prefix + this.#table.names[this.#index]!;
  }

  /** The name without the parts that its tags contain, and the tags. */
  get tagged(): TaggedName {
    return this.#reader.tagged(this.#section, this.#table, this.#index);
  }

  get kind(): Kind {
    return this.#table.kinds[this.#index]!;
  }

  get unit(): Unit {
    return this.#table.units[this.#index]!;
  }

  /** The current value of a gauge. */
  get value(): number {
    return this.#reader.value(this.#section, this.#table, this.#index);
  }

  /** The count of a counter since the start of the process, as of this flush. Resets affect only the admin interface. */
  get total(): number {
    return this.#latches.value(this.#section, this.#index);
  }

  /** The count of a counter since the previous flush. */
  get delta(): number {
    return this.#latches.delta(this.#section, this.#index);
  }

  /** Undefined if the scope was removed. */
  get histogram(): HistogramValue | undefined {
    return this.#reader.histogram(this.#section, this.#table, this.#index);
  }

  /** Upper bounds of the histogram's buckets, ascending. */
  get bounds(): readonly number[] {
    return this.#reader.bounds(this.#section, this.#table, this.#index);
  }
}
