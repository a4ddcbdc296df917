// Metrics of a few families, made together: scope by scope, as they lie in memory, and kept until they are sent by family.

import { Kind, PERCENT_SCALE } from '../layout.js';
import type { StatsReader } from '../read/reader.js';
import type { Section } from '../read/section.js';
import type { Pieces } from '../render/pieces.js';
import { type Families, type MemberWalk, passOf } from './families.js';
import type { FamilyHead, MonitoringFormat } from './format.js';

/** How many metrics are made together: some 4 MB. */
const SIZE = 64 * 1024;
/** Histograms are long. */
const HISTOGRAMS = 2 * 1024;
/** Metrics between two rests: some 2 ms. */
const REST_AFTER = 2000;
const HISTOGRAMS_REST_AFTER = 200;

/** What metrics are made with. */
export interface MetricSource {
  readonly reader: StatsReader;
  readonly format: MonitoringFormat;
  /** For the bytes of a batch. */
  readonly made: Pieces;
}

/** The families of one kind. */
export interface FamilyGroup {
  readonly families: Families;
  /** Of the families, in their order. */
  readonly heads: readonly FamilyHead[];
  readonly kind: Kind;
}

export class MetricBatch {
  /** The members that it holds: from `start` to `end`. */
  start = 0;
  end = 0;
  readonly #reader: StatsReader;
  readonly #families: Families;
  readonly #heads: readonly FamilyHead[];
  readonly #kind: Kind;
  readonly #format: MonitoringFormat;
  readonly #made: Pieces;
  /** Where each member's bytes begin and end. */
  #from = new Float64Array();
  #to = new Float64Array();

  constructor({ format, made, reader }: MetricSource, { families, heads, kind }: FamilyGroup) {
    this.#reader = reader;
    this.#families = families;
    this.#heads = heads;
    this.#kind = kind;
    this.#format = format;
    this.#made = made;
  }

  /** Makes the members that follow, `rank` being the family of the first. Yields now and then, so that others get the thread. */
  *makeNext(rank: number): Generator<void, void> {
    this.start = this.end;
    this.end = this.#endFrom(rank);
    this.#from = new Float64Array(this.end - this.start);
    this.#to = new Float64Array(this.end - this.start);
    this.#made.clear();
    const restAfter = this.#kind === Kind.Histogram ? HISTOGRAMS_REST_AFTER : REST_AFTER;
    let count = 0;
    let section: Section | undefined;
    let isLive = false;
    for (const walk = this.#families.bySection(this.start, this.end); walk.next(); ) {
      if (walk.section !== section) {
        section = walk.section;
        // Its scope may have gone since it was found.
        isLive = this.#reader.isLive(section);
      }
      this.#from[walk.member - this.start] = this.#made.length;
      if (isLive) this.#put(walk);
      this.#to[walk.member - this.start] = this.#made.length;
      if (++count % restAfter !== 0) continue;
      section = undefined;
      yield;
    }
  }

  /** Bytes of the members from `start` to `end`, all of which it holds. */
  bytesOf(start: number, end: number): number {
    let bytes = 0;
    for (let i = start - this.start; i < end - this.start; i++) bytes += this.#to[i]! - this.#from[i]!;
    return bytes;
  }

  /** Puts the bytes of a member. */
  putTo(out: Pieces, member: number): void {
    const i = member - this.start;
    out.putFrom(this.#made, this.#from[i]!, this.#to[i]!);
  }

  /** Whole families only where their bytes have to be known. */
  #endFrom(rank: number): number {
    const { all } = this.#families;
    const limit = this.start + (this.#kind === Kind.Histogram ? HISTOGRAMS : SIZE);
    if (!this.#format.needsBytes) return Math.min(limit, all.at(-1)!.end);
    let end = all[rank]!.end;
    for (let i = rank + 1; i < all.length && all[i]!.end <= limit; i++) end = all[i]!.end;
    return end;
  }

  #put({ section, index, rank }: MemberWalk): void {
    const reader = this.#reader;
    const format = this.#format;
    const head = this.#heads[rank]!;
    const table = section.tables[passOf(this.#kind)];
    const { tags } = reader.tagged(section, table, index);
    if (this.#kind === Kind.Text) {
      format.putText(this.#made, head, tags, reader.text(section, table, index));
    } else if (this.#kind !== Kind.Histogram) {
      format.putValue(this.#made, head, tags, reader.value(section, table, index));
    } else {
      const scale = table.units[index] === 'percent' ? PERCENT_SCALE : 1;
      const value = reader.histogram(section, table, index);
      format.putHistogram(this.#made, head, tags, { value, scale, bounds: reader.bounds(section, table, index) });
    }
  }
}
