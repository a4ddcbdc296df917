// Exports this process's stats to a child process that continues them: counters as deltas, gauges as values.

import { inTurns, nextTurn } from '../../common/time/next-turn.js';
import type { StatsPiece, StatsSection } from '../../restart/messages.js';
import { CounterLatches } from '../../stats/flush/counter-latches.js';
import { Kind } from '../../stats/layout.js';
import type { StatsReader } from '../../stats/read/reader.js';
import { Pass, type Section } from '../../stats/read/section.js';
import type { StatsStore } from '../../stats/store.js';
import type { ProcessHoldings } from '../stats/server-stats.js';

/** A message has at most 64 KiB; the names and values of a piece take about this much. */
const PIECE_BYTES = 32 * 1024;
/** Bytes of a stat in addition to its name, and of a section in addition to its prefix. */
const ENTRY_BYTES = 24;

/** Returns how much of a counter was flushed to the stats sinks; undefined without sinks. */
export type FlushedAmount = (section: Section, index: number) => number | undefined;

export class StatsExport {
  readonly #store: StatsStore;
  readonly #flushedAmount: FlushedAmount;
  readonly #latches = new CounterLatches();
  #isFirst = true;

  constructor(store: StatsStore, flushedAmount: FlushedAmount) {
    this.#store = store;
    this.#flushedAmount = flushedAmount;
  }

  /** Returns a counter's value at its last export. */
  exported(section: Section, index: number): number {
    return this.#latches.value(section, index);
  }

  /** Calls `callback` for each exported counter, with its value at the last export. */
  forEachExported(callback: (name: string, total: number) => void): void {
    for (const section of this.#store.reader().sections) {
      const { kinds, length, names } = section.tables[Pass.Values];
      for (let i = 0; i < length; i++) {
        const total = kinds[i] === Kind.Counter ? this.#latches.value(section, i) : 0;
        if (total > 0) callback(section.prefix + names[i]!, total);
      }
    }
  }

  /**
   * Yields the counts since the last call, at first those since the process started or its counters were reset, and nonzero
   * gauges that can be imported. Yields to the event loop in between.
   */
  async *pieces(holdings: ProcessHoldings): AsyncGenerator<StatsPiece> {
    const reader = this.#store.reader();
    const { sections } = reader;
    await inTurns(this.#latches.latch(reader, sections));
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    let found: StatsSection[] = [];
    let bytes = 0;
    for (const section of sections) {
      if (section.hidden || !reader.isLive(section)) continue;
      for (const part of this.#parts(reader, section, isFirst)) {
        found.push(part.stats);
        bytes += part.bytes;
        if (bytes < PIECE_BYTES) continue;
        yield { sections: found, ...holdings, isLast: false };
        await nextTurn();
        found = [];
        bytes = 0;
      }
    }
    yield { sections: found, ...holdings, isLast: true };
  }

  /** Yields the stats of a section, in parts that fit into a piece. */
  *#parts(reader: StatsReader, section: Section, isFirst: boolean): Generator<{ stats: StatsSection; bytes: number }> {
    const table = section.tables[Pass.Values];
    let part = emptySection(section.prefix);
    let bytes = section.prefix.length * 3;
    const takesGauges = !OWN_PREFIXES.includes(section.prefix);
    for (let i = 0; i < table.length; i++) {
      const name = table.names[i]!;
      if (table.kinds[i] === Kind.Counter) {
        const delta = isFirst ? this.#latched(reader, section, i) : this.#latches.delta(section, i);
        if (delta <= 0) continue;
        part.counters.push(name);
        part.deltas.push(delta);
        part.flushed.push(isFirst ? this.#flushed(section, i, delta) : 0);
      } else {
        const value = takesGauges && table.imports[i] ? reader.value(section, table, i) : 0;
        if (value <= 0) continue;
        part.gauges.push(name);
        part.values.push(value);
      }
      bytes += name.length * 3 + ENTRY_BYTES;
      if (bytes < PIECE_BYTES) continue;
      yield { stats: part, bytes };
      part = emptySection(section.prefix);
      bytes = section.prefix.length * 3;
    }
    if (part.counters.length + part.gauges.length > 0) yield { stats: part, bytes };
  }

  /** Returns the value that a counter showed when it was latched; later increments belong to the next delta. */
  #latched(reader: StatsReader, section: Section, index: number): number {
    return this.#latches.value(section, index) - reader.beforeReset(section, section.tables[Pass.Values], index);
  }

  /** Returns how much of a counter's shown value the stats sinks have received already; all of it without sinks. */
  #flushed(section: Section, index: number, shown: number): number {
    const flushed = this.#flushedAmount(section, index);
    if (flushed === undefined) return shown;
    const isNew = this.#latches.value(section, index) - flushed;
    return Math.max(0, shown - isNew);
  }
}

/** Prefixes of gauges about the process itself. The parent's memory and connections are sent separately. */
const OWN_PREFIXES = ['server.', 'filesystem.'];

function emptySection(prefix: string) {
  return {
    prefix,
    counters: [] as string[],
    deltas: [] as number[],
    flushed: [] as number[],
    gauges: [] as string[],
    values: [] as number[],
  };
}
