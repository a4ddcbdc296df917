// What one flush gives to sinks: counters with their deltas, gauges and histograms of the interval, without hidden ones, walked
// one at a time. Nothing is copied: what a sink is shown reads the stat when it is asked.

import type { Distribution } from '../histograms/distribution.js';
import type { HistogramValue } from '../histograms/merged-histogram.js';
import type { Kind, Unit } from '../layout.js';
import type { StatsReader } from '../read/reader.js';
import { Pass, type Section, type StatTable } from '../read/section.js';
import type { TaggedName } from '../tags.js';
import type { CounterLatches } from './counter-latches.js';

export interface FlushTimes {
  /** Milliseconds since 1970: since when counters have counted, which may be longer than the process has run. */
  readonly countedSinceMs: number;
  /** When the process began, when the flush before this one was, and this one. */
  readonly startMs: number;
  readonly previousMs: number;
  readonly nowMs: number;
}

/** Stats that one step looks at, used or not; of a section all are looked at. */
const LOOKS_PER_STEP = 4096;

export class FlushedStats {
  readonly times: FlushTimes;
  readonly #reader: StatsReader;
  readonly #sections: readonly Section[];
  readonly #latches: CounterLatches;

  /** `latches` have latched these sections for this flush. */
  constructor(reader: StatsReader, sections: readonly Section[], latches: CounterLatches, times: FlushTimes) {
    this.#reader = reader;
    this.#sections = sections;
    this.#latches = latches;
    this.times = times;
  }

  /**
   * Shows counters that were ever incremented and gauges that were ever changed, mixed: one at a time, each valid until the
   * next. Yields behind every `perStep` of them, and before it has looked at many that are unused.
   */
  eachValue(perStep: number, visit: (stat: FlushedStat) => void): Generator<void, void> {
    return this.#walk(Pass.Values, perStep, visit);
  }

  /** As eachValue(), with histograms that ever had a sample. */
  eachHistogram(perStep: number, visit: (stat: FlushedStat) => void): Generator<void, void> {
    return this.#walk(Pass.Histograms, perStep, visit);
  }

  /** What the counter of that full name has counted since the process began; 0 when there is none. */
  counter(name: string): number {
    const found = this.#reader.find(name);
    return found === undefined ? 0 : this.#reader.total(found.section, found.table, found.index);
  }

  /** The samples that the histogram of that full name had since the flush before; undefined when it never had any. */
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
        stat.standAt(section, table, index);
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

/** The stat that a walk is at. */
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

  /** For the walk. */
  standAt(section: Section, table: StatTable, index: number): void {
    this.#section = section;
    this.#table = table;
    this.#index = index;
  }

  /** Full name. */
  get name(): string {
    return this.#section.prefix + this.#table.names[this.#index]!;
  }

  /** The name without what its tags say, and these. */
  get tagged(): TaggedName {
    return this.#reader.tagged(this.#section, this.#table, this.#index);
  }

  get kind(): Kind {
    return this.#table.kinds[this.#index]!;
  }

  get unit(): Unit {
    return this.#table.units[this.#index]!;
  }

  /** A gauge as it is now. */
  get value(): number {
    return this.#reader.value(this.#section, this.#table, this.#index);
  }

  /** What a counter has counted since the process began, as of this flush: resets are of the admin interface only. */
  get total(): number {
    return this.#latches.value(this.#section, this.#index);
  }

  /** What a counter has counted since the flush before. */
  get delta(): number {
    return this.#latches.delta(this.#section, this.#index);
  }

  /** Undefined when the scope is gone. */
  get histogram(): HistogramValue | undefined {
    return this.#reader.histogram(this.#section, this.#table, this.#index);
  }

  /** Upper bounds of the histogram's buckets, ascending. */
  get bounds(): readonly number[] {
    return this.#reader.bounds(this.#section, this.#table, this.#index);
  }
}
