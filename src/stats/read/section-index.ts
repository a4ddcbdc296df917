// Builds the sections of a store from records in shared memory: only records added or removed since the last update are
// read.

import type { Kind, Unit } from '../layout.js';
import {
  Control,
  NAMED_TEXT,
  NamedRecord,
  RecordType,
  SCOPE_TEXT,
  ScopeFlag,
  ScopeRecord,
  TYPE_MASK,
} from '../memory/format.js';
import type { RangeView } from '../memory/range.js';
import { UNITS } from '../memory/thread-range.js';
import { type DynamicStat, dynamicSection, type Section, type Tables } from './section.js';

/** What a section is built from besides its records. */
export interface SectionSource {
  /** Tables by the number of their layout. */
  readonly tables: readonly Tables[];
  /** Number of readable chunks of pages. */
  readonly chunks: number;
  /** Returns the section without rejected stats; undefined if none are left. */
  shown(section: Section): Section | undefined;
}

/** One thread's record of a name that traffic created. */
interface Named {
  readonly thread: number;
  readonly place: number;
  readonly tag: number;
  readonly prefix: string;
  readonly name: string;
  readonly kind: Kind;
  readonly unit: Unit;
}

interface ReadState {
  /** Values of the control words up to which added and removed names and scopes were read. */
  added: number;
  removed: number;
  /** The first record that was never read, */
  position: number;
  /** and records before it that were free or being written, and may come to hold a name or a scope. */
  readonly free: Set<number>;
}

/** Maximum number of tables that are kept for later names. */
const MAX_TABLES = 1000;

export class SectionIndex {
  readonly #ranges: readonly RangeView[];
  readonly #source: SectionSource;
  /** How far each thread's records were read. */
  readonly #read: ReadState[];
  /** Tags of scopes by place. */
  readonly #scopes = new Map<number, number>();
  /** Each thread's names by place, and all names by prefix. */
  readonly #names: Map<number, Named>[];
  readonly #byPrefix = new Map<string, Set<Named>>();
  /** Prefixes whose names have changed since their section was built. */
  readonly #changed = new Set<string>();
  readonly #tables = new Map<string, Tables>();
  #sections: readonly Section[] = [];

  constructor(ranges: readonly RangeView[], source: SectionSource) {
    this.#ranges = ranges;
    this.#source = source;
    this.#read = ranges.map(() => ({ added: -1, removed: 0, position: 0, free: new Set() }));
    this.#names = ranges.map(() => new Map());
  }

  /** In the order of prefixes. Unchanged sections remain the same objects. */
  get sections(): readonly Section[] {
    return this.#sections;
  }

  /** Reads the changes; `grown`: more memory is readable than before. Returns whether anything changed. */
  update(grown: boolean): boolean {
    const added: Section[] = [];
    let isSwept = false;
    let isChanged = false;
    this.#ranges.forEach((range, thread) => {
      const read = this.#read[thread]!;
      const names = Atomics.load(range.control, Control.Names);
      const removed = Atomics.load(range.control, Control.Retired) + Atomics.load(range.control, Control.Removed);
      if (removed !== read.removed) this.#forgetRemoved(range, thread);
      if (names !== read.added || grown) this.#readNew(range, thread, added);
      isSwept ||= removed !== read.removed;
      isChanged ||= isSwept || names !== read.added || grown;
      read.removed = removed;
      read.added = names;
    });
    if (isChanged) this.#arrange(added, isSwept);
    return isChanged;
  }

  #arrange(added: Section[], isSwept: boolean): void {
    let kept = this.#sections;
    if (this.#changed.size > 0) kept = kept.filter(({ parts, prefix }) => !parts || !this.#changed.has(prefix));
    const directory = this.#ranges[0]!;
    if (isSwept) kept = kept.filter(({ parts, place, tag }) => parts || directory.tag(place) === tag);
    for (const prefix of this.#changed) {
      const section = this.#namesSection(prefix);
      if (section !== undefined) added.push(section);
    }
    this.#changed.clear();
    this.#sections = merge(kept, added.sort(byPrefix));
  }

  /** Removes records whose tag has changed. */
  #forgetRemoved(range: RangeView, thread: number): void {
    const { free } = this.#read[thread]!;
    const names = this.#names[thread]!;
    for (const [place, named] of names) {
      if (range.tag(place) === named.tag) continue;
      this.#forget(names, named);
      free.add(place);
    }
    if (thread > 0) return;
    for (const [place, tag] of this.#scopes) {
      if (range.tag(place) === tag) continue;
      this.#scopes.delete(place);
      free.add(place);
    }
  }

  /** Reads records that are new since the last update. */
  #readNew(range: RangeView, thread: number, added: Section[]): void {
    const read = this.#read[thread]!;
    const names = this.#names[thread]!;
    const take = (place: number, type: RecordType): boolean => {
      if (type === RecordType.Named) return this.#addName(names, thread, place);
      return type === RecordType.Scope && this.#addScope(range, place, added);
    };
    for (const place of read.free) if (take(place, range.type(place))) read.free.delete(place);
    read.position = range.walk(read.position, (place, type) => {
      const pool = range.pool(place);
      if ((pool === RecordType.Named || pool === RecordType.Scope) && !take(place, type)) read.free.add(place);
    });
  }

  /** Returns false if the record cannot be read yet. */
  #addScope(directory: RangeView, place: number, added: Section[]): boolean {
    const section = this.#scopeSection(directory, place);
    if (section === undefined) return false;
    this.#scopes.set(place, section.tag);
    const shown = this.#source.shown(section);
    if (shown !== undefined) added.push(shown);
    return true;
  }

  /**
   * Returns undefined if the record is being written, or refers to memory that is not readable yet: it is read again later.
   */
  #scopeSection(directory: RangeView, place: number): Section | undefined {
    const tag = directory.tag(place);
    const tables = this.#source.tables[directory.word(place, ScopeRecord.Layout)];
    const chunk = directory.word(place, ScopeRecord.Chunk);
    const base = directory.word(place, ScopeRecord.Base);
    const hidden = (directory.word(place, ScopeRecord.Flags) & ScopeFlag.Hidden) !== 0;
    const prefix = directory.text(place, SCOPE_TEXT, 0, directory.word(place, ScopeRecord.PrefixBytes));
    if (directory.tag(place) !== tag || tables === undefined || chunk >= this.#source.chunks) return undefined;
    return { prefix, hidden, tables, chunk, base, place, tag, parts: undefined };
  }

  /** Returns false if the record cannot be read yet. */
  #addName(names: Map<number, Named>, thread: number, place: number): boolean {
    const range = this.#ranges[thread]!;
    const tag = range.tag(place);
    const prefixBytes = range.word(place, NamedRecord.PrefixBytesWord);
    const prefix = range.text(place, NAMED_TEXT, 0, prefixBytes);
    const name = range.text(place, NAMED_TEXT, prefixBytes, range.word(place, NamedRecord.NameBytesWord));
    const kind: Kind = range.word(place, NamedRecord.KindWord);
    const unit = UNITS[range.word(place, NamedRecord.UnitWord)]!;
    if (range.tag(place) !== tag || (tag & TYPE_MASK) !== RecordType.Named) return false;
    const named = { thread, place, tag, prefix, name, kind, unit };
    names.set(place, named);
    const siblings = this.#byPrefix.get(prefix);
    if (siblings === undefined) this.#byPrefix.set(prefix, new Set([named]));
    else siblings.add(named);
    this.#changed.add(prefix);
    return true;
  }

  #forget(names: Map<number, Named>, named: Named): void {
    names.delete(named.place);
    const siblings = this.#byPrefix.get(named.prefix)!;
    siblings.delete(named);
    if (siblings.size === 0) this.#byPrefix.delete(named.prefix);
    this.#changed.add(named.prefix);
  }

  #namesSection(prefix: string): Section | undefined {
    const records = this.#byPrefix.get(prefix);
    if (records === undefined) return undefined;
    const stats = new Map<string, DynamicStat>();
    // In the order of threads: if two have different kinds under one name, the first counts.
    for (const record of [...records].sort((a, b) => a.thread - b.thread)) {
      const { name, kind, unit, thread, place, tag } = record;
      let stat = stats.get(name);
      if (stat === undefined) stats.set(name, (stat = { name, kind, unit, threads: [], places: [], tags: [] }));
      if (stat.kind !== kind) continue;
      stat.threads.push(thread);
      stat.places.push(place);
      stat.tags.push(tag);
    }
    if (this.#tables.size > MAX_TABLES) this.#tables.clear();
    return this.#source.shown(dynamicSection(prefix, [...stats.values()], this.#tables));
  }
}

function byPrefix(a: Section, b: Section): number {
  return a.prefix < b.prefix ? -1 : a.prefix > b.prefix ? 1 : 0;
}

/** Merges two sorted lists. Few sections are added to many, so positions are found by binary search. */
function merge(kept: readonly Section[], added: readonly Section[]): readonly Section[] {
  if (kept.length === 0) return added;
  const merged: Section[] = [];
  let from = 0;
  for (const section of added) {
    const to = placeOf(section.prefix, kept, from);
    while (from < to) merged.push(kept[from++]!);
    merged.push(section);
  }
  while (from < kept.length) merged.push(kept[from++]!);
  return merged;
}

/** Returns the position after all sections from `low` whose prefix is not greater. */
function placeOf(prefix: string, sections: readonly Section[], low: number): number {
  let high = sections.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sections[middle]!.prefix > prefix) high = middle;
    else low = middle + 1;
  }
  return low;
}
