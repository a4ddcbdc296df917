// Reads a store on any thread: the directory as sections sorted by prefix, and values by section or by full name.
//
// A reader uses only shared memory. Added and removed scopes become visible with refresh(). A section whose scope was
// removed meanwhile reads as removed, never as the scope that reused its memory.

import { BucketBounds } from '../histograms/bucket-bounds.js';
import { type HistogramValue, readMerged } from '../histograms/merged-histogram.js';
import { Kind, type StatEntry } from '../layout.js';
import { NamedRecord, PAGE_SLOTS, RecordType, TEXT_BYTES, TEXT_BYTES_WORD, TYPE_MASK } from '../memory/format.js';
import { RangeView } from '../memory/range.js';
import { DEFAULT_SETTINGS, type StatsSettings } from '../settings/settings.js';
import { StatsFilter } from '../settings/stats-filter.js';
import { SectionTags } from '../tags/section-tags.js';
import { TagExtractor } from '../tags/tag-extractor.js';
import type { TaggedName } from '../tags.js';
import { type DynamicStat, layoutTables, type Section, type StatTable, type Tables } from './section.js';
import { SectionIndex } from './section-index.js';

/** How much of a store an attachment covers; it only grows. */
export interface StatsExtent {
  /** StatsStore.version */
  readonly version: number;
  readonly layoutCount: number;
}

/**
 * What a reader needs, as plain data for any thread. Posting many chunks takes milliseconds: StatsStore.extent shows whether
 * a thread needs an attachment again.
 */
export interface StatsReaderAttachment {
  readonly version: number;
  /** Threads that count: the primary and the workers. */
  readonly threads: number;
  readonly control: SharedArrayBuffer;
  readonly pages: readonly SharedArrayBuffer[];
  /** The chunks of every thread's range. */
  readonly ranges: readonly (readonly SharedArrayBuffer[])[];
  readonly layouts: readonly (readonly StatEntry[])[];
  /** Default: nothing is configured. */
  readonly settings?: StatsSettings;
}

/** A stat found by name. */
export interface FoundStat {
  readonly section: Section;
  readonly table: StatTable;
  readonly index: number;
}

export class StatsReader {
  readonly #source: StatsReaderAttachment;
  readonly #pages: Float64Array[] = [];
  readonly #ranges: RangeView[];
  readonly #tables: Tables[] = [];
  readonly #settings: StatsSettings;
  readonly #bounds: BucketBounds;
  readonly #filter: StatsFilter | undefined;
  #tags: SectionTags | undefined;
  readonly #index: SectionIndex;
  #byPrefix: Map<string, Section[]> | undefined;
  /** The source's version, as far as its memory is attached. */
  #version = -1;

  /** @throws BatonError if an expression in the settings is invalid, which loading the configuration rules out */
  constructor(attachment: StatsReaderAttachment) {
    this.#source = attachment;
    this.#settings = attachment.settings ?? DEFAULT_SETTINGS;
    this.#bounds = new BucketBounds(this.#settings.buckets);
    this.#filter = this.#settings.matcher && new StatsFilter(this.#settings.matcher);
    this.#ranges = attachment.ranges.map((_, thread) => new RangeView(attachment.control, thread, []));
    const pages = this.#pages;
    this.#index = new SectionIndex(this.#ranges, {
      tables: this.#tables,
      get chunks() {
        return pages.length;
      },
      shown: (section) => this.#shown(section),
    });
    this.refresh();
  }

  /** All sections in the order of their prefixes, as of the last refresh. Stats that stats_matcher rejects are in none. */
  get sections(): readonly Section[] {
    return this.#index.sections;
  }

  /** Reads scopes and names that were added or removed. Cheap if there were none or few. */
  refresh(): void {
    const { version, layouts } = this.#source;
    const grown = version !== this.#version || layouts.length !== this.#tables.length;
    this.#version = version;
    if (grown) this.#attach();
    if (this.#index.update(grown)) this.#byPrefix = undefined;
  }

  /** Returns whether the section's scope still exists. */
  isLive(section: Section): boolean {
    return section.parts !== undefined || this.#ranges[0]!.tag(section.place) === section.tag;
  }

  /** Returns a counter since the last reset, or a gauge. */
  value(section: Section, table: StatTable, index: number): number {
    if (section.parts !== undefined) return this.#dynamicValue(section.parts[table.at[index]!]!);
    const page = this.#pages[section.chunk]!;
    return blockValue(page, section.base + table.at[index]!, this.#source.threads, table.kinds[index]!);
  }

  /** Returns a counter since the start of the process, independent of resets. */
  total(section: Section, table: StatTable, index: number): number {
    if (section.parts !== undefined) return this.#dynamicTotal(section.parts[table.at[index]!]!);
    return slotSum(this.#pages[section.chunk]!, section.base + table.at[index]!, this.#source.threads);
  }

  /** Returns a counter's total() minus its value(): the count before the last reset. */
  beforeReset(section: Section, table: StatTable, index: number): number {
    const place = table.at[index]!;
    if (section.parts !== undefined) return this.#dynamicTotal(section.parts[place]!, NamedRecord.View);
    return this.#view(section, place);
  }

  /** Returns whether a counter was ever incremented, a gauge changed, a histogram merged or a text set. */
  isUsed(section: Section, table: StatTable, index: number): boolean {
    const kind = table.kinds[index];
    if (section.parts !== undefined) return this.#isDynamicUsed(section.parts[table.at[index]!]!);
    const page = this.#pages[section.chunk]!;
    let slot = section.base + table.at[index]!;
    if (kind === Kind.Histogram || kind === Kind.Text) return this.#view(section, table.at[index]!) !== 0;
    for (let thread = 0; thread < this.#source.threads; thread++, slot += PAGE_SLOTS) {
      if (page[slot] !== 0 || (kind === Kind.Gauge && !Object.is(page[slot + 1], 0))) return true;
    }
    return false;
  }

  /** Returns a histogram as of the last flush; undefined if it was never merged. */
  histogram(section: Section, table: StatTable, index: number): HistogramValue | undefined {
    const at = table.at[index]!;
    const directory = this.#ranges[0]!;
    // The primary may be writing this record, or have moved it and reused the old one: then it is read again.
    for (;;) {
      const place = this.#histogramPlace(section, at);
      if (place === 0 || !directory.reaches(place)) return undefined;
      const value = readMerged(directory, place);
      if (value !== undefined && place === this.#histogramPlace(section, at)) return value;
    }
  }

  /** Returns a text readout; '' if it was never set. */
  text(section: Section, table: StatTable, index: number): string {
    const directory = this.#ranges[0]!;
    for (;;) {
      const place = this.#view(section, table.at[index]!);
      if (place === 0 || !directory.reaches(place)) return '';
      const tag = directory.tag(place);
      if ((tag & TYPE_MASK) !== RecordType.Text) continue;
      const text = directory.text(place, TEXT_BYTES, 0, directory.word(place, TEXT_BYTES_WORD));
      if (directory.tag(place) === tag && place === this.#view(section, table.at[index]!)) return text;
    }
  }

  /** Returns the stat with this full dotted name. */
  find(name: string): FoundStat | undefined {
    this.refresh();
    this.#byPrefix ??= indexByPrefix(this.sections);
    for (let end = name.length; end >= 0; end = name.lastIndexOf('.', end - 1)) {
      const prefix = end === name.length ? '' : name.slice(0, end + 1);
      const rest = name.slice(prefix.length);
      for (const section of this.#byPrefix.get(prefix) ?? []) {
        for (const table of section.tables) {
          const index = table.indexOf(rest);
          if (index >= 0 && this.isLive(section)) return { section, table, index };
        }
      }
      if (end === 0) break;
    }
    return undefined;
  }

  /**
   * Returns a stat's name and tags (FACTS §4), as extracted from its full name. Stats of one section with the same tags
   * share one list of them.
   */
  tagged(section: Section, table: StatTable, index: number): TaggedName {
    this.#tags ??= new SectionTags(new TagExtractor(this.#settings.usesDefaultTags, this.#settings.tags));
    return this.#tags.tagged(section, table, index);
  }

  /** Returns the upper bounds of a histogram's buckets, ascending: those of histogram_bucket_settings, or DEFAULT_BOUNDS. */
  bounds(section: Section, table: StatTable, index: number): readonly number[] {
    return this.#bounds.bounds(section, table, index);
  }

  #shown(section: Section): Section | undefined {
    if (this.#filter === undefined) return section;
    const tables = this.#filter.tables(section.prefix, section.tables);
    return tables === undefined || tables === section.tables ? tables && section : { ...section, tables };
  }

  /** Attaches new memory. The source grows only on the primary. */
  #attach(): void {
    const { pages, ranges, layouts } = this.#source;
    for (let i = this.#pages.length; i < pages.length; i++) this.#pages.push(new Float64Array(pages[i]!));
    for (let i = this.#tables.length; i < layouts.length; i++) this.#tables.push(layoutTables(layouts[i]!));
    for (let thread = 0; thread < ranges.length; thread++) {
      const range = this.#ranges[thread]!;
      for (let i = range.slots.length; i < ranges[thread]!.length; i++) range.attach(ranges[thread]![i]!);
    }
  }

  #histogramPlace(section: Section, at: number): number {
    return section.parts === undefined ? this.#view(section, at) : this.#dynamicView(section.parts[at]!);
  }

  #view(section: Section, at: number): number {
    return this.#pages[section.chunk]![section.base + at + this.#source.threads * PAGE_SLOTS]!;
  }

  #dynamicValue(stat: DynamicStat): number {
    let sum = 0;
    for (let i = 0; i < stat.places.length; i++) {
      const range = this.#ranges[stat.threads[i]!]!;
      const place = stat.places[i]!;
      if (range.tag(place) !== stat.tags[i]) continue;
      const minus = stat.kind === Kind.Counter ? NamedRecord.View : NamedRecord.Downs;
      sum += range.slot(place, NamedRecord.Value) - range.slot(place, minus);
    }
    return Math.max(sum, 0);
  }

  #dynamicTotal(stat: DynamicStat, slot = NamedRecord.Value): number {
    let sum = 0;
    for (let i = 0; i < stat.places.length; i++) {
      const range = this.#ranges[stat.threads[i]!]!;
      if (range.tag(stat.places[i]!) === stat.tags[i]) sum += range.slot(stat.places[i]!, slot);
    }
    return sum;
  }

  #isDynamicUsed(stat: DynamicStat): boolean {
    if (stat.kind === Kind.Histogram) return this.#dynamicView(stat) !== 0;
    for (let i = 0; i < stat.places.length; i++) {
      const range = this.#ranges[stat.threads[i]!]!;
      const place = stat.places[i]!;
      if (range.tag(place) !== stat.tags[i]) continue;
      if (range.slot(place, NamedRecord.Value) !== 0 || !Object.is(range.slot(place, NamedRecord.Downs), 0))
        return true;
    }
    return false;
  }

  #dynamicView(stat: DynamicStat): number {
    for (let i = 0; i < stat.places.length; i++) {
      const range = this.#ranges[stat.threads[i]!]!;
      if (range.tag(stat.places[i]!) !== stat.tags[i]) continue;
      const place = range.slot(stat.places[i]!, NamedRecord.View);
      if (place !== 0) return place;
    }
    return 0;
  }
}

/** Returns the value of a counter or a gauge; `slot` is its slot in the first page of the chunk. */
export function blockValue(chunk: Float64Array, slot: number, threads: number, kind: Kind): number {
  if (kind === Kind.Counter) return slotSum(chunk, slot, threads) - chunk[slot + threads * PAGE_SLOTS]!;
  let sum = 0;
  for (let thread = 0; thread < threads; thread++, slot += PAGE_SLOTS) sum += chunk[slot]! - chunk[slot + 1]!;
  // Threads are read one after the other: a gauge that one raises and another lowers may appear negative for a moment.
  return Math.max(sum, 0);
}

/** Returns the sum of a slot over all threads. */
export function slotSum(chunk: Float64Array, slot: number, threads: number): number {
  let sum = 0;
  for (let thread = 0; thread < threads; thread++, slot += PAGE_SLOTS) sum += chunk[slot]!;
  return sum;
}

function indexByPrefix(sections: readonly Section[]): Map<string, Section[]> {
  const index = new Map<string, Section[]>();
  for (const section of sections) {
    const list = index.get(section.prefix);
    if (list === undefined) index.set(section.prefix, [section]);
    else list.push(section);
  }
  return index;
}
