// Reads a store on any thread: the directory as sections that sort by prefix, values by section or by full name.
//
// A reader works on shared memory alone. What is added or removed shows after refresh(); a section whose scope has gone in
// the meantime reads as gone, never as what took its place.

import {
  CONTROL_WORDS,
  Control,
  NAMED_TEXT,
  NamedRecord,
  PAGE_SLOTS,
  RecordType,
  SCOPE_TEXT,
  ScopeFlag,
  ScopeRecord,
  TEXT_BYTES,
  TEXT_BYTES_WORD,
  TYPE_MASK,
} from './format.js';
import { Kind, type StatEntry } from './layout.js';
import { type HistogramValue, readMerged } from './merged-histogram.js';
import { RangeView } from './range.js';
import {
  type DynamicStat,
  dynamicSection,
  layoutTables,
  type Section,
  type StatTable,
  type Tables,
} from './section.js';
import { UNITS } from './thread-range.js';

/** What a reader needs; plain data that can be posted to any thread. */
export interface StatsReaderAttachment {
  readonly version: number;
  /** Threads that count: the primary and the workers. */
  readonly threads: number;
  readonly control: SharedArrayBuffer;
  readonly pages: readonly SharedArrayBuffer[];
  /** Chunks of every thread's range. */
  readonly ranges: readonly (readonly SharedArrayBuffer[])[];
  readonly layouts: readonly (readonly StatEntry[])[];
}

/** A stat that was found by name. */
export interface FoundStat {
  readonly section: Section;
  readonly table: StatTable;
  readonly index: number;
}

export class StatsReader {
  readonly #source: StatsReaderAttachment;
  readonly #control: Int32Array;
  readonly #pages: Float64Array[] = [];
  readonly #ranges: RangeView[];
  readonly #tables: Tables[] = [];
  #sections: Section[] = [];
  #byPrefix: Map<string, Section[]> | undefined;
  #seen = -1;

  constructor(attachment: StatsReaderAttachment) {
    this.#source = attachment;
    this.#control = new Int32Array(attachment.control);
    this.#ranges = attachment.ranges.map((_, thread) => new RangeView(attachment.control, thread, []));
    this.refresh();
  }

  /** All sections in the order of their prefixes, as of the last refresh. */
  get sections(): readonly Section[] {
    return this.#sections;
  }

  /** Takes in scopes and names that have come or gone. Cheap when nothing has. */
  refresh(): void {
    const changes = this.#changes();
    if (changes === this.#seen) return;
    this.#seen = changes;
    this.#attach();
    const sections: Section[] = [];
    const directory = this.#ranges[0]!;
    directory.walk(0, (place, type) => {
      if (type !== RecordType.Scope) return;
      const section = this.#scopeSection(directory, place);
      if (section !== undefined) sections.push(section);
    });
    for (const section of this.#dynamicSections()) sections.push(section);
    sections.sort((a, b) => (a.prefix < b.prefix ? -1 : a.prefix > b.prefix ? 1 : 0));
    this.#sections = sections;
    this.#byPrefix = undefined;
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

  /** Whether a counter was ever incremented, a gauge ever changed, a histogram merged or a text set. */
  isUsed(section: Section, table: StatTable, index: number): boolean {
    const kind = table.kinds[index];
    if (section.parts !== undefined) return this.#isDynamicUsed(section.parts[table.at[index]!]!);
    const page = this.#pages[section.chunk]!;
    let slot = section.base + table.at[index]!;
    if (kind === Kind.Histogram || kind === Kind.Text) return page[slot + this.#source.threads * PAGE_SLOTS] !== 0;
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
    this.#byPrefix ??= indexByPrefix(this.#sections);
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

  #changes(): number {
    let changes = this.#source.version;
    for (let thread = 0; thread < this.#source.threads; thread++) {
      changes += Atomics.load(this.#control, thread * CONTROL_WORDS + Control.Names);
      changes += Atomics.load(this.#control, thread * CONTROL_WORDS + Control.Retired);
    }
    return changes;
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

  #scopeSection(directory: RangeView, place: number): Section | undefined {
    const tag = directory.tag(place);
    const tables = this.#tables[directory.word(place, ScopeRecord.Layout)];
    const chunk = directory.word(place, ScopeRecord.Chunk);
    const section = {
      prefix: directory.text(place, SCOPE_TEXT, 0, directory.word(place, ScopeRecord.PrefixBytes)),
      hidden: (directory.word(place, ScopeRecord.Flags) & ScopeFlag.Hidden) !== 0,
      chunk,
      base: directory.word(place, ScopeRecord.Base),
      place,
      tag,
      parts: undefined,
    };
    // Written anew while it was read, or younger than what this reader was given: the next refresh shows it.
    if (directory.tag(place) !== tag || tables === undefined || chunk >= this.#pages.length) return undefined;
    return { ...section, tables };
  }

  #dynamicSections(): Section[] {
    const byPrefix = new Map<string, Map<string, DynamicStat>>();
    this.#ranges.forEach((range, thread) => {
      range.walk(0, (place, type) => {
        if (type === RecordType.Named) readName(byPrefix, range, thread, place);
      });
    });
    const tables = new Map<string, Tables>();
    return Array.from(byPrefix, ([prefix, stats]) => dynamicSection(prefix, [...stats.values()], tables));
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
  let sum = 0;
  if (kind === Kind.Counter) {
    for (let thread = 0; thread < threads; thread++, slot += PAGE_SLOTS) sum += chunk[slot]!;
    return sum - chunk[slot]!;
  }
  for (let thread = 0; thread < threads; thread++, slot += PAGE_SLOTS) sum += chunk[slot]! - chunk[slot + 1]!;
  // Threads are read one after the other: a gauge that one raises and another lowers may look negative for a moment.
  return Math.max(sum, 0);
}

function readName(
  byPrefix: Map<string, Map<string, DynamicStat>>,
  range: RangeView,
  thread: number,
  place: number,
): void {
  const tag = range.tag(place);
  const prefixBytes = range.word(place, NamedRecord.PrefixBytesWord);
  const prefix = range.text(place, NAMED_TEXT, 0, prefixBytes);
  const name = range.text(place, NAMED_TEXT, prefixBytes, range.word(place, NamedRecord.NameBytesWord));
  const kind = range.word(place, NamedRecord.KindWord);
  const unit = UNITS[range.word(place, NamedRecord.UnitWord)]!;
  if (range.tag(place) !== tag || (tag & TYPE_MASK) !== RecordType.Named) return;
  let stats = byPrefix.get(prefix);
  if (stats === undefined) byPrefix.set(prefix, (stats = new Map()));
  let stat = stats.get(name);
  if (stat === undefined) stats.set(name, (stat = { name, kind, unit, threads: [], places: [], tags: [] }));
  if (stat.kind !== kind) return;
  stat.threads.push(thread);
  stat.places.push(place);
  stat.tags.push(tag);
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
