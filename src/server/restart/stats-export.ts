// What this process has counted, for a child process that goes on counting: counters as deltas, gauges as they are.

import { inTurns, nextTurn } from '../../common/time/next-turn.js';
import type { StatsPiece, StatsSection } from '../../restart/messages.js';
import { CounterLatches } from '../../stats/flush/counter-latches.js';
import { Kind } from '../../stats/layout.js';
import type { StatsReader } from '../../stats/read/reader.js';
import { Pass, type Section } from '../../stats/read/section.js';
import type { StatsStore } from '../../stats/store.js';
import type { ProcessHoldings } from '../stats/server-stats.js';

/** A message holds 64 KiB: names and numbers of a piece take about this many bytes. */
const PIECE_BYTES = 32 * 1024;
/** Bytes of a stat beside its name, and of a section beside its prefix. */
const ENTRY_BYTES = 24;

/** How much of a counter the stats sinks have been given; undefined when there are none. */
export type Given = (section: Section, index: number) => number | undefined;

export class StatsExport {
  readonly #store: StatsStore;
  readonly #given: Given;
  readonly #latches = new CounterLatches();
  #isFirst = true;

  constructor(store: StatsStore, given: Given) {
    this.#store = store;
    this.#given = given;
  }

  /** What a counter stood at when it was told last. */
  told(section: Section, index: number): number {
    return this.#latches.value(section, index);
  }

  /** Calls back for each counter of which anything was told, with what it stood at then. */
  forEachTold(callback: (name: string, total: number) => void): void {
    for (const section of this.#store.reader().sections) {
      const { kinds, length, names } = section.tables[Pass.Values];
      for (let i = 0; i < length; i++) {
        const total = kinds[i] === Kind.Counter ? this.#latches.value(section, i) : 0;
        if (total > 0) callback(section.prefix + names[i]!, total);
      }
    }
  }

  /**
   * What was counted since the last call, the first time since the process began (or counters were reset), and importing
   * gauges that are not 0. Others get turns of the loop meanwhile.
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

  /** What there is to say of a section, in parts that fit in a piece. */
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

  /** What a counter showed when it was latched: what is counted meanwhile is the next delta's. */
  #latched(reader: StatsReader, section: Section, index: number): number {
    return this.#latches.value(section, index) - reader.beforeReset(section, section.tables[Pass.Values], index);
  }

  /** How much of what a counter shows is nothing new for stats sinks: without sinks all of it. */
  #flushed(section: Section, index: number, shown: number): number {
    const given = this.#given(section, index);
    if (given === undefined) return shown;
    const isNew = this.#latches.value(section, index) - given;
    return Math.max(0, shown - isNew);
  }
}

/** Prefixes whose gauges speak of one process: memory and connections of a parent travel on their own. */
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
