// Reads a store on any thread: the directory as sections that sort by prefix, values by section or by full name.
//
// A reader works on shared memory alone. What is added or removed shows after refresh(); a section whose scope has gone in
// the meantime reads as gone, never as what took its place.

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

/** How much of a store an attachment covers. It only grows. */
export interface StatsExtent {
  /** StatsStore.version */
  readonly version: number;
  readonly layoutCount: number;
}

/**
 * What a reader needs; plain data that can be posted to any thread. With many chunks that takes milliseconds: StatsStore.extent
 * tells whether a thread needs it again.
 */
export interface StatsReaderAttachment {
  readonly version: number;
  /** Threads that count: the primary and the workers. */
  readonly threads: number;
  readonly control: SharedArrayBuffer;
  readonly pages: readonly SharedArrayBuffer[];
  /** Chunks of every thread's range. */
  readonly ranges: readonly (readonly SharedArrayBuffer[])[];
  readonly layouts: readonly (readonly StatEntry[])[];
  /** Left out: nothing is configured. */
  readonly settings?: StatsSettings;
}

/** A stat that was found by name. */
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
  /** Of the source, as far as its memory is attached. */
  #version = -1;

  /** @throws BatonError when an expression in the settings is invalid, which loading the configuration rules out */
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

  /** Takes in scopes and names that have come or gone. Cheap when nothing has, and where few have. */
  refresh(): void {
    const { version, layouts } = this.#source;
    const grown = version !== this.#version || layouts.length !== this.#tables.length;
    this.#version = version;
    if (grown) this.#attach();
    if (this.#index.update(grown)) this.#byPrefix = undefined;
  }

  /** Whether the section's scope is still there. */
  isLive(section: Section): boolean {
    return section.parts !== undefined || this.#ranges[0]!.tag(section.place) === section.tag;
  }

  /** A counter since the last reset, or a gauge. */
  value(section: Section, table: StatTable, index: number): number {
    if (section.parts !== undefined) return this.#dynamicValue(section.parts[table.at[index]!]!);
    const page = this.#pages[section.chunk]!;
    return blockValue(page, section.base + table.at[index]!, this.#source.threads, table.kinds[index]!);
  }

  /** A counter since the process began, whatever was reset. */
  total(section: Section, table: StatTable, index: number): number {
    if (section.parts !== undefined) return this.#dynamicTotal(section.parts[table.at[index]!]!);
    return slotSum(this.#pages[section.chunk]!, section.base + table.at[index]!, this.#source.threads);
  }

  /** What a counter's total() has and its value() does not: what was counted before the last reset. */
  beforeReset(section: Section, table: StatTable, index: number): number {
    const place = table.at[index]!;
    if (section.parts !== undefined) return this.#dynamicTotal(section.parts[place]!, NamedRecord.View);
    return this.#view(section, place);
  }

  /** Whether a counter was ever incremented, a gauge ever changed, a histogram merged or a text set. */
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

  /** A histogram as of the last flush; undefined when it was never merged. */
  histogram(section: Section, table: StatTable, index: number): HistogramValue | undefined {
    const at = table.at[index]!;
    const directory = this.#ranges[0]!;
    // The primary may be writing this very record, or have moved it and used the old one again: then it is asked for anew.
    for (;;) {
      const place = this.#histogramPlace(section, at);
      if (place === 0 || !directory.reaches(place)) return undefined;
      const value = readMerged(directory, place);
      if (value !== undefined && place === this.#histogramPlace(section, at)) return value;
    }
  }

  /** A text readout; empty when it was never set. */
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

  /** The stat with this full dotted name. */
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
   * A stat's name and tags (FACTS §4), as if extracted from its full name. Stats of one section that have the same tags have
   * the same list of them.
   */
  tagged(section: Section, table: StatTable, index: number): TaggedName {
    this.#tags ??= new SectionTags(new TagExtractor(this.#settings.usesDefaultTags, this.#settings.tags));
    return this.#tags.tagged(section, table, index);
  }

  /** Upper bounds of a histogram's buckets, ascending: as histogram_bucket_settings say, or DEFAULT_BOUNDS. */
  bounds(section: Section, table: StatTable, index: number): readonly number[] {
    return this.#bounds.bounds(section, table, index);
  }

  #shown(section: Section): Section | undefined {
    if (this.#filter === undefined) return section;
    const tables = this.#filter.tables(section.prefix, section.tables);
    return tables === undefined || tables === section.tables ? tables && section : { ...section, tables };
  }

  /** On the primary the source grows; elsewhere all of it was there from the start. */
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

/** The value of a counter or a gauge whose slot in the first page of a chunk this is. */
export function blockValue(chunk: Float64Array, slot: number, threads: number, kind: Kind): number {
  if (kind === Kind.Counter) return slotSum(chunk, slot, threads) - chunk[slot + threads * PAGE_SLOTS]!;
  let sum = 0;
  for (let thread = 0; thread < threads; thread++, slot += PAGE_SLOTS) sum += chunk[slot]! - chunk[slot + 1]!;
  // Threads are read one after the other: a gauge that one raises and another lowers may look negative for a moment.
  return Math.max(sum, 0);
}

/** What all threads have counted in a slot. */
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
