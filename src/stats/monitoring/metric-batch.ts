// Renders the metrics of several families together, scope by scope in the order of memory, and keeps them until they are
// sent by family.

import { Kind, PERCENT_SCALE } from '../layout.js';
import type { StatsReader } from '../read/reader.js';
import type { Section } from '../read/section.js';
import type { Pieces } from '../render/pieces.js';
import { type Families, type MemberWalk, passOf } from './families.js';
import type { FamilyHead, MonitoringFormat } from './format.js';

/** Maximum number of metrics in a batch: some 4 MB. */
const SIZE = 64 * 1024;
/** The same for histograms, which are longer. */
const HISTOGRAMS = 2 * 1024;
/** Metrics between two pauses: some 2 ms. */
const PAUSE_AFTER = 2000;
const HISTOGRAMS_PAUSE_AFTER = 200;

/** What metrics are rendered with. */
export interface MetricSource {
  readonly reader: StatsReader;
  readonly format: MonitoringFormat;
  /** Holds the bytes of a batch. */
  readonly rendered: Pieces;
}

/** The families of one kind. */
export interface FamilyGroup {
  readonly families: Families;
  /** The heads of the families, in the same order. */
  readonly heads: readonly FamilyHead[];
  readonly kind: Kind;
}

export class MetricBatch {
  /** The members in the batch: from `start` to `end`. */
  start = 0;
  end = 0;
  readonly #reader: StatsReader;
  readonly #families: Families;
  readonly #heads: readonly FamilyHead[];
  readonly #kind: Kind;
  readonly #format: MonitoringFormat;
  readonly #rendered: Pieces;
  /** Where each member's bytes begin and end. */
  #from = new Float64Array();
  #to = new Float64Array();

  constructor({ format, rendered, reader }: MetricSource, { families, heads, kind }: FamilyGroup) {
    this.#reader = reader;
    this.#families = families;
    this.#heads = heads;
    this.#kind = kind;
    this.#format = format;
    this.#rendered = rendered;
  }

  /** Renders the next members; `rank` is the family of the first. Yields regularly to other work on the thread. */
  *renderNext(rank: number): Generator<void, void> {
    this.start = this.end;
    this.end = this.#endFrom(rank);
    this.#from = new Float64Array(this.end - this.start);
    this.#to = new Float64Array(this.end - this.start);
    this.#rendered.clear();
    const pauseAfter = this.#kind === Kind.Histogram ? HISTOGRAMS_PAUSE_AFTER : PAUSE_AFTER;
    let count = 0;
    let section: Section | undefined;
    let isLive = false;
    for (const walk = this.#families.bySection(this.start, this.end); walk.next(); ) {
      if (walk.section !== section) {
        section = walk.section;
        // The scope may have been removed since the stat was found.
        isLive = this.#reader.isLive(section);
      }
      this.#from[walk.member - this.start] = this.#rendered.length;
      if (isLive) this.#put(walk);
      this.#to[walk.member - this.start] = this.#rendered.length;
      if (++count % pauseAfter !== 0) continue;
      section = undefined;
      yield;
    }
  }

  /** Returns the size of the members from `start` to `end`, which must be in the batch. */
  bytesOf(start: number, end: number): number {
    let bytes = 0;
    for (let i = start - this.start; i < end - this.start; i++) bytes += this.#to[i]! - this.#from[i]!;
    return bytes;
  }

  /** Copies the bytes of a member to `out`. */
  putTo(out: Pieces, member: number): void {
    const i = member - this.start;
    out.putFrom(this.#rendered, this.#from[i]!, this.#to[i]!);
  }

  /** Returns the end of the next batch. It ends with a whole family only if the format needs the size of families. */
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
      format.putText(this.#rendered, head, tags, reader.text(section, table, index));
    } else if (this.#kind !== Kind.Histogram) {
      format.putValue(this.#rendered, head, tags, reader.value(section, table, index));
    } else {
      const scale = table.units[index] === 'percent' ? PERCENT_SCALE : 1;
      const value = reader.histogram(section, table, index);
      format.putHistogram(this.#rendered, head, tags, { value, scale, bounds: reader.bounds(section, table, index) });
    }
  }
}
