// Groups stats into families: all stats with the same name after tag extraction, in any scope.
//
// A first walk numbers the families and stores 12 bytes per stat; the stats are then sorted by family. A store of a million
// stats takes some 16 MB while it is rendered, and no list of names is built.

import { Kind } from '../layout.js';
import type { StatsReader } from '../read/reader.js';
import { Pass, type Section } from '../read/section.js';
import { Selection, type StatsQuery } from '../read/selection.js';
import { metricName } from './names.js';

/** Stats between two pauses. */
const PAUSE_AFTER = 2000;

export interface Family {
  /** The name for monitoring systems. */
  readonly name: string;
  /** Index of the first member, and the index after the last. */
  readonly start: number;
  readonly end: number;
}

/** The families of one kind. Members are contiguous and, within a family, in the order of their full names. */
export class Families {
  /** In the order of their names after tag extraction. */
  readonly all: readonly Family[];
  readonly #found: FoundStats;
  /** The rank of each family by its number. */
  readonly #ranks: Uint32Array;
  /** Indexes of the found stats, in the order of members. */
  readonly #order: Uint32Array;

  constructor(found: FoundStats) {
    this.#found = found;
    const familyOf = found.familyOf.values;
    const count = found.familyOf.length;
    // A counting sort is stable: each family keeps the order of the walk.
    const sizes = new Uint32Array(found.names.length);
    for (let i = 0; i < count; i++) sizes[familyOf[i]!]!++;
    const numbers = Array.from(found.names.keys()).sort((a, b) => (found.names[a]! < found.names[b]! ? -1 : 1));
    const places = new Uint32Array(numbers.length);
    this.#ranks = new Uint32Array(numbers.length);
    let start = 0;
    this.all = numbers.map((number, rank) => {
      this.#ranks[number] = rank;
      places[number] = start;
      const family = { name: metricName(found.names[number]!), start, end: start + sizes[number]! };
      start = family.end;
      return family;
    });
    this.#order = new Uint32Array(count);
    for (let i = 0; i < count; i++) this.#order[places[familyOf[i]!]!++] = i;
  }

  /** Returns the members from `start` to `end`, grouped by section. */
  bySection(start: number, end: number): MemberWalk {
    return new MemberWalk(this.#found, this.#ranks, this.#order, start, end);
  }
}

/** Visits members in the order in which they were found: reading memory sequentially takes a third of the time. */
export class MemberWalk {
  /** The current member after next() returned true: its index among all members, */
  member = 0;
  /** the index of its family, */
  rank = 0;
  section!: Section;
  /** and its index in the section's table of the pass. */
  index = 0;
  readonly #found: FoundStats;
  readonly #ranks: Uint32Array;
  readonly #start: number;
  /** Sort keys: the index among the found stats, combined with the member's index. */
  readonly #keys: Float64Array;
  #next = 0;

  constructor(found: FoundStats, ranks: Uint32Array, order: Uint32Array, start: number, end: number) {
    this.#found = found;
    this.#ranks = ranks;
    this.#start = start;
    const count = end - start;
    this.#keys = new Float64Array(count);
    for (let i = 0; i < count; i++) this.#keys[i] = order[start + i]! * count + i;
    this.#keys.sort();
  }

  next(): boolean {
    const keys = this.#keys;
    if (this.#next === keys.length) return false;
    const key = keys[this.#next++]!;
    const i = key % keys.length;
    const at = (key - i) / keys.length;
    const { sections, sectionOf, indexOf, familyOf } = this.#found;
    this.member = this.#start + i;
    this.rank = this.#ranks[familyOf.values[at]!]!;
    this.section = sections[sectionOf.values[at]!]!;
    this.index = indexOf.values[at]!;
    return true;
  }
}

/** Groups the selected stats of one kind. Yields regularly to other work on the thread. */
export function* groupFamilies(reader: StatsReader, query: StatsQuery, kind: Kind): Generator<void, Families> {
  const found = new FoundStats();
  let seen = 0;
  for (const stats = new Selection(reader, { ...query, type: TYPES[kind] }, passOf(kind)); stats.next(); ) {
    if (!stats.isPaused)
      found.add(stats.section, stats.index, reader.tagged(stats.section, stats.table, stats.index).name);
    if (!stats.isPaused && ++seen % PAUSE_AFTER !== 0) continue;
    yield;
  }
  return new Families(found);
}

export function passOf(kind: Kind): Pass {
  if (kind === Kind.Histogram) return Pass.Histograms;
  return kind === Kind.Text ? Pass.Texts : Pass.Values;
}

/** Names of the kinds in queries. */
export const TYPES = {
  [Kind.Counter]: 'counters',
  [Kind.Gauge]: 'gauges',
  [Kind.Histogram]: 'histograms',
  [Kind.Text]: 'textreadouts',
} as const;

class FoundStats {
  readonly sections: Section[] = [];
  /** The first tag-extracted name of each family, by its number. */
  readonly names: string[] = [];
  readonly sectionOf = new Numbers();
  readonly indexOf = new Numbers();
  readonly familyOf = new Numbers();
  readonly #families = new Map<string, number>();

  add(section: Section, index: number, name: string): void {
    if (this.sections.at(-1) !== section) this.sections.push(section);
    this.sectionOf.push(this.sections.length - 1);
    this.indexOf.push(index);
    this.familyOf.push(this.#families.get(name) ?? this.#newFamily(name));
  }

  /** Names that differ only in characters that monitoring systems do not allow (`a.b`, `a_b`) form one family. */
  #newFamily(name: string): number {
    const metric = metricName(name);
    let number = this.#families.get(metric);
    if (number === undefined) {
      number = this.names.push(name) - 1;
      this.#families.set(metric, number);
    }
    this.#families.set(name, number);
    return number;
  }
}

/** A growing list of numbers. */
class Numbers {
  values = new Uint32Array(1024);
  length = 0;

  push(value: number): void {
    if (this.length === this.values.length) {
      const larger = new Uint32Array(this.length * 2);
      larger.set(this.values);
      this.values = larger;
    }
    this.values[this.length++] = value;
  }
}
