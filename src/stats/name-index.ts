// The primary's index of names that traffic created: by prefix, to free them with their scopes, and histograms by full name,
// to merge them.

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

/** A removed name, with its histogram if it was the first of several threads' records. */
export interface RemovedName {
  readonly named: NamedPlace;
  readonly histogram: NamedHistogram | undefined;
}

/** Collects new names while it is enabled. */
export interface NameCollector {
  readonly isEnabled: boolean;
  collect(name: string): void;
}

interface Prefix {
  readonly named: NamedPlace[];
  readonly histograms: Map<string, NamedHistogram>;
}

export class NameIndex {
  /** Number of records of all threads, as of the last sync(). */
  size = 0;
  readonly #ranges: readonly RangeView[];
  readonly #watch: NameCollector;
  readonly #prefixes = new Map<string, Prefix>();
  /** How far each range was read, and the number of name changes that this covers. */
  readonly #positions: number[];
  readonly #changes: number[];
  /** Records before the position that may come to hold a name: freed records, and records that were being written. */
  readonly #free: Set<number>[];

  /** `watch` receives the full names of new records while it is enabled. */
  constructor(ranges: readonly RangeView[], watch: NameCollector) {
    this.#ranges = ranges;
    this.#watch = watch;
    this.#positions = ranges.map(() => 0);
    this.#changes = ranges.map(() => 0);
    this.#free = ranges.map(() => new Set());
  }

  /** Reads the names that threads have added. */
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

  /** Yields every thread's record of every name. */
  *all(): Generator<NamedPlace> {
    for (const { named } of this.#prefixes.values()) yield* named;
  }

  *histograms(): Generator<NamedHistogram> {
    for (const { histograms } of this.#prefixes.values()) yield* histograms.values();
  }

  /** Removes all names under the prefix and returns them. */
  remove(prefix: string): RemovedName[] {
    const known = this.#prefixes.get(prefix);
    if (known === undefined) return [];
    this.#prefixes.delete(prefix);
    const first = new Map<NamedPlace, NamedHistogram>();
    for (const histogram of known.histograms.values()) first.set(histogram.places[0]!, histogram);
    this.size -= known.named.length;
    // A step-by-step walk over the histograms skips the removed ones.
    known.histograms.clear();
    return known.named.map((named) => {
      this.#free[named.thread]!.add(named.place);
      return { named, histogram: first.get(named) };
    });
  }

  /** Removes a thread's record of a counter or gauge and returns it; undefined if there is none. */
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

/** Returns the name without its prefix. */
function nameAt(range: RangeView, place: number): string {
  const prefixBytes = range.word(place, NamedRecord.PrefixBytesWord);
  return range.text(place, NAMED_TEXT, prefixBytes, range.word(place, NamedRecord.NameBytesWord));
}
