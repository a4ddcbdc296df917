// The names that traffic brought, as the primary knows them: by prefix, to free them with their scopes, and histograms by
// full name, to merge them.

import { MergedHistogram } from './histograms/merged-histogram.js';
import { Kind } from './layout.js';
import { Control, NAMED_TEXT, NamedRecord, RecordType } from './memory/format.js';
import type { RangeView } from './memory/range.js';

/** One thread's record of a name. */
export interface NamedPlace {
  readonly thread: number;
  readonly place: number;
  readonly kind: Kind;
}

export interface NamedHistogram {
  readonly places: NamedPlace[];
  readonly merged: MergedHistogram;
}

/** A name that is gone, with its histogram when it was the first of several threads' records of it. */
export interface RemovedName {
  readonly named: NamedPlace;
  readonly histogram: NamedHistogram | undefined;
}

/** Who wants to know of names that are new. */
export interface NameWatch {
  readonly isEnabled: boolean;
  collect(name: string): void;
}

interface Prefix {
  readonly named: NamedPlace[];
  readonly histograms: Map<string, NamedHistogram>;
}

export class NameIndex {
  /** Every thread's record of every name, as of the last sync(). */
  size = 0;
  readonly #ranges: readonly RangeView[];
  readonly #watch: NameWatch;
  readonly #prefixes = new Map<string, Prefix>();
  /** How far each range was read, and how many changes of its names that covers. */
  readonly #positions: number[];
  readonly #changes: number[];
  /** Free records before the position that may come to hold a name: freed ones, and one that was being written. */
  readonly #free: Set<number>[];

  /** `watch` is told new names in full while it is enabled. */
  constructor(ranges: readonly RangeView[], watch: NameWatch) {
    this.#ranges = ranges;
    this.#watch = watch;
    this.#positions = ranges.map(() => 0);
    this.#changes = ranges.map(() => 0);
    this.#free = ranges.map(() => new Set());
  }

  /** Takes in what threads have added. */
  sync(): void {
    this.#ranges.forEach((range, thread) => {
      const changes = Atomics.load(range.control, Control.Names);
      if (changes === this.#changes[thread]) return;
      this.#changes[thread] = changes;
      for (const place of this.#free[thread]!) {
        if (range.type(place) !== RecordType.Named) continue;
        this.#free[thread]!.delete(place);
        this.#add(range, thread, place);
      }
      this.#positions[thread] = range.walk(this.#positions[thread]!, (place, type) => {
        if (type === RecordType.Named) this.#add(range, thread, place);
        else if (type === RecordType.Free && range.pool(place) === RecordType.Named) this.#free[thread]!.add(place);
      });
    });
  }

  /** Every thread's record of every name. */
  *all(): Generator<NamedPlace> {
    for (const { named } of this.#prefixes.values()) yield* named;
  }

  *histograms(): Generator<NamedHistogram> {
    for (const { histograms } of this.#prefixes.values()) yield* histograms.values();
  }

  /** Forgets all names under the prefix and tells which they were. */
  remove(prefix: string): RemovedName[] {
    const known = this.#prefixes.get(prefix);
    if (known === undefined) return [];
    this.#prefixes.delete(prefix);
    const first = new Map<NamedPlace, NamedHistogram>();
    for (const histogram of known.histograms.values()) first.set(histogram.places[0]!, histogram);
    this.size -= known.named.length;
    // Who is walking over histograms step by step finds no more of these.
    known.histograms.clear();
    return known.named.map((named) => {
      this.#free[named.thread]!.add(named.place);
      return { named, histogram: first.get(named) };
    });
  }

  /** Forgets a thread's record of one counter or gauge; undefined when it has none. */
  removeOne(prefix: string, name: string, thread: number): NamedPlace | undefined {
    const { named = [] } = this.#prefixes.get(prefix) ?? {};
    const range = this.#ranges[thread]!;
    const index = named.findIndex(
      (each) => each.thread === thread && each.kind !== Kind.Histogram && nameAt(range, each.place) === name,
    );
    if (index < 0) return undefined;
    this.size--;
    const [removed] = named.splice(index, 1);
    this.#free[thread]!.add(removed!.place);
    return removed;
  }

  #add(range: RangeView, thread: number, place: number): void {
    const prefixBytes = range.word(place, NamedRecord.PrefixBytesWord);
    const prefix = range.text(place, NAMED_TEXT, 0, prefixBytes);
    const named = { thread, place, kind: range.word(place, NamedRecord.KindWord) };
    let known = this.#prefixes.get(prefix);
    if (known === undefined) this.#prefixes.set(prefix, (known = { named: [], histograms: new Map() }));
    known.named.push(named);
    this.size++;
    if (named.kind !== Kind.Histogram && !this.#watch.isEnabled) return;
    const name = nameAt(range, place);
    this.#watch.collect(prefix + name);
    if (named.kind !== Kind.Histogram) return;
    const histogram = known.histograms.get(name);
    if (histogram !== undefined) histogram.places.push(named);
    else known.histograms.set(name, { places: [named], merged: new MergedHistogram() });
  }
}

/** Without its prefix. */
function nameAt(range: RangeView, place: number): string {
  const prefixBytes = range.word(place, NamedRecord.PrefixBytesWord);
  return range.text(place, NAMED_TEXT, prefixBytes, range.word(place, NamedRecord.NameBytesWord));
}
