// Stats as one thread writes them: scopes known from the configuration, and names that traffic creates.
//
// Every slot and every record has one writer, this thread, so counting is a plain addition in shared memory.

import { type CounterSlot, type GaugeSlot, type HistogramSlot, Kind, type Unit } from './layout.js';
import {
  Control,
  NAMED_TEXT,
  NamedRecord,
  PAGE_SLOTS,
  RANGE_MASK,
  RANGE_SHIFT,
  RecordType,
  SLOT_BYTES,
} from './memory/format.js';
import { ThreadRange } from './memory/thread-range.js';

/** The position of a scope's block, as plain data in snapshots. */
export interface ScopeRef {
  readonly prefix: string;
  /** Number of the layout in the store. */
  readonly layout: number;
  readonly chunk: number;
  readonly base: number;
}

/** What a worker needs to count, as plain data posted to it when it starts. */
export interface WorkerStatsAttachment {
  /** 0 is the primary, 1 the first worker. */
  readonly thread: number;
  /** The version of the store's memory that this covers; later chunks are those since this version. */
  readonly version: number;
  readonly control: SharedArrayBuffer;
  readonly pages: readonly SharedArrayBuffer[];
  /** Chunks of the thread's own range. */
  readonly range: readonly SharedArrayBuffer[];
}

/** Memory by which a store has grown, as plain data for every worker. */
export interface StatsChunks {
  /** The version after these chunks. */
  readonly version: number;
  readonly pages: readonly { readonly index: number; readonly buffer: SharedArrayBuffer }[];
  readonly ranges: readonly { readonly thread: number; readonly index: number; readonly buffer: SharedArrayBuffer }[];
}

/** Limit of the names without a scope in a thread: they are never removed, and configurations may bring ever new ones. */
export const MAX_LASTING_NAMES = 50_000;

export class ThreadStats {
  /** The thread's range; the primary also keeps the store's records there. */
  readonly range: ThreadRange;
  readonly #thread: number;
  readonly #pages: Float64Array[] = [];
  /** Handles of names, by prefix, NUL, and name. */
  readonly #named = new Map<string, DynamicCounter | DynamicGauge | DynamicHistogram>();
  #retiredSeen: number;
  /** Names without a scope. */
  #lastingNames = 0;

  /** A thread that replaces a dead one finds all names and histograms of its predecessor. */
  constructor(attachment: WorkerStatsAttachment) {
    this.#thread = attachment.thread;
    this.range = new ThreadRange(attachment.control, attachment.thread, attachment.range);
    for (const page of attachment.pages) this.#attachPage(page);
    this.#retiredSeen = Atomics.load(this.range.control, Control.Retired);
    this.range.walk(0, (place, type) => {
      if (type === RecordType.Named) this.#adopt(place);
      else if (type !== RecordType.Free) return;
      else if (this.range.pool(place) === RecordType.Named) this.range.reclaimName(place);
      else this.range.reuse(place);
    });
  }

  /** Samples and names that were lost because the range had no room. */
  get dropped(): number {
    return this.range.control[Control.Dropped]!;
  }

  /** Adds new memory. Call it before a snapshot whose scopes may lie there. Known chunks are skipped. */
  addChunks(chunks: StatsChunks): void {
    for (const { index, buffer } of chunks.pages) if (index === this.#pages.length) this.#attachPage(buffer);
    for (const { thread, index, buffer } of chunks.ranges) {
      if (thread === this.#thread && index === this.range.slots.length) this.range.attach(buffer);
    }
  }

  /**
   * Returns the scope for writes of this thread. Throws if the chunk of its block was not added; the prefix is for that
   * message.
   */
  scope(ref: Pick<ScopeRef, 'prefix' | 'chunk' | 'base'>): Scope {
    const page = this.#pages[ref.chunk];
    if (page === undefined) {
      throw new Error(
        `stats scope "${ref.prefix}" lies in chunk ${ref.chunk}, of which thread ${this.#thread} has ` +
          `${this.#pages.length}: add the store's new chunks before the snapshot that refers to them`,
      );
    }
    return new Scope(page, ref.base, this.range);
  }

  /**
   * Returns the counter `prefix + name`, created on first use; callers keep the handle. `prefix` is that of a scope, with
   * which the counter is removed; a counter with the prefix '' is never removed, and above MAX_LASTING_NAMES counts nothing. The name must
   * not be in a layout of the scope.
   */
  dynamicCounter(prefix: string, name: string): DynamicCounter {
    const handle = this.#find(prefix, name, Kind.Counter, 'none');
    if (!(handle instanceof DynamicCounter)) throw this.#kindConflict(prefix, name);
    return handle;
  }

  /** Returns the gauge `prefix + name`, as dynamicCounter() does. */
  dynamicGauge(prefix: string, name: string): DynamicGauge {
    const handle = this.#find(prefix, name, Kind.Gauge, 'none');
    if (!(handle instanceof DynamicGauge)) throw this.#kindConflict(prefix, name);
    return handle;
  }

  /** Returns the histogram `prefix + name` of milliseconds, as dynamicCounter() does. */
  dynamicHistogram(prefix: string, name: string): DynamicHistogram {
    const handle = this.#find(prefix, name, Kind.Histogram, 'ms');
    if (!(handle instanceof DynamicHistogram)) throw this.#kindConflict(prefix, name);
    return handle;
  }

  #attachPage(chunk: SharedArrayBuffer): void {
    this.#pages.push(new Float64Array(chunk, this.#thread * PAGE_SLOTS * SLOT_BYTES, PAGE_SLOTS));
  }

  #find(prefix: string, name: string, kind: Kind, unit: Unit): DynamicCounter | DynamicGauge | DynamicHistogram {
    this.#reclaimRetired();
    this.range.control[Control.Lookups]!++;
    const key = `${prefix}\0${name}`;
    const known = this.#named.get(key);
    if (known !== undefined) return known;
    const isLasting = prefix === '';
    const isFull = isLasting && this.#lastingNames >= MAX_LASTING_NAMES;
    const place = isFull ? this.range.refuse() : this.range.newName(prefix, name, kind, unit);
    const handle = this.#handle(place, kind);
    // Without room the handle counts into a dummy, and the next caller retries.
    if (place === 0) return handle;
    this.#named.set(key, handle);
    if (isLasting) this.#lastingNames++;
    Atomics.add(this.range.control, Control.Names, 1);
    return handle;
  }

  #handle(place: number, kind: Kind): DynamicCounter | DynamicGauge | DynamicHistogram {
    const slots = place === 0 ? new Float64Array(8) : this.range.slots[place >>> RANGE_SHIFT]!;
    if (kind === Kind.Counter) return new DynamicCounter(slots, place);
    if (kind === Kind.Gauge) return new DynamicGauge(slots, place);
    return new DynamicHistogram(slots, place, this.range);
  }

  #adopt(place: number): void {
    const range = this.range;
    const prefixBytes = range.word(place, NamedRecord.PrefixBytesWord);
    const prefix = range.text(place, NAMED_TEXT, 0, prefixBytes);
    const name = range.text(place, NAMED_TEXT, prefixBytes, range.word(place, NamedRecord.NameBytesWord));
    this.#named.set(`${prefix}\0${name}`, this.#handle(place, range.word(place, NamedRecord.KindWord)));
    if (prefix === '') this.#lastingNames++;
  }

  /** Drops the handles of names that the primary has freed with their scopes, and reclaims their records. */
  #reclaimRetired(): void {
    const retired = Atomics.load(this.range.control, Control.Retired);
    if (retired === this.#retiredSeen) return;
    this.#retiredSeen = retired;
    for (const [key, handle] of this.#named) {
      if (this.range.type(handle.place) !== RecordType.Free) continue;
      this.#named.delete(key);
      this.range.reclaimName(handle.place);
    }
  }

  #kindConflict(prefix: string, name: string): Error {
    return new Error(
      `the stat "${prefix}${name}" exists with another kind: a name keeps its kind while the process lives`,
    );
  }
}

/** A scope's block in this thread's page. Slots come from the layout that the scope was added with. */
export class Scope {
  readonly page: Float64Array;
  readonly base: number;
  readonly #range: ThreadRange;
  /** All threads' pages, and the view after them, for total(). */
  #pages: Float64Array | undefined;

  constructor(page: Float64Array, base: number, range: ThreadRange) {
    this.page = page;
    this.base = base;
    this.#range = range;
  }

  /** Increments a counter or a gauge. */
  increment(at: CounterSlot | GaugeSlot): void {
    this.page[this.base + at]!++;
  }

  /** Adds `n` >= 0. Throws a TypeError if `n` is not a finite number. */
  add(at: CounterSlot | GaugeSlot, n: number): void {
    checkChange(n);
    this.page[this.base + at]! += n;
  }

  /** Adds a length, which is known to be a number. */
  addBytes(at: CounterSlot, bytes: number): void {
    this.page[this.base + at]! += bytes;
  }

  /** Decrements a gauge. */
  decrement(at: GaugeSlot): void {
    this.page[this.base + at + 1]!++;
  }

  /** Subtracts `n` >= 0 from a gauge. Throws as add() does. */
  subtract(at: GaugeSlot, n: number): void {
    checkChange(n);
    this.page[this.base + at + 1]! += n;
  }

  /** Sets this thread's contribution to `value`; 0 counts as a change too. */
  set(at: GaugeSlot, value: number): void {
    setGauge(this.page, this.base + at, value);
  }

  /** Returns a gauge's sum over all threads. Concurrent changes of other threads may be included or not. */
  total(at: GaugeSlot): number {
    this.#pages ??= new Float64Array(this.page.buffer);
    const pages = this.#pages;
    let sum = 0;
    for (let slot = this.base + at; slot < pages.length - PAGE_SLOTS; slot += PAGE_SLOTS)
      sum += pages[slot]! - pages[slot + 1]!;
    return Math.max(sum, 0);
  }

  /** Records a sample of a histogram, in its unit. */
  record(at: HistogramSlot, value: number): void {
    const histogram = this.page[this.base + at]!;
    if (histogram === 0) this.#recordFirst(at, value);
    else this.#range.record(histogram, value);
  }

  #recordFirst(at: HistogramSlot, value: number): void {
    const histogram = this.#range.newHistogram();
    if (histogram === 0) return;
    this.page[this.base + at] = histogram;
    this.#range.record(histogram, value);
  }
}

/** A counter that traffic created, as one thread writes it. */
export class DynamicCounter {
  readonly place: number;
  readonly #slots: Float64Array;
  readonly #at: number;

  constructor(slots: Float64Array, place: number) {
    this.place = place;
    this.#slots = slots;
    this.#at = (place & RANGE_MASK) + NamedRecord.Value;
  }

  increment(): void {
    this.#slots[this.#at]!++;
  }

  /** Throws as Scope.add() does. */
  add(n: number): void {
    checkChange(n);
    this.#slots[this.#at]! += n;
  }
}

/** A gauge that traffic created, as one thread writes it. */
export class DynamicGauge {
  readonly place: number;
  readonly #slots: Float64Array;
  readonly #at: number;

  constructor(slots: Float64Array, place: number) {
    this.place = place;
    this.#slots = slots;
    this.#at = (place & RANGE_MASK) + NamedRecord.Value;
  }

  increment(): void {
    this.#slots[this.#at]!++;
  }

  decrement(): void {
    this.#slots[this.#at + 1]!++;
  }

  set(value: number): void {
    setGauge(this.#slots, this.#at, value);
  }
}

/** A histogram that traffic created, as one thread writes it. */
export class DynamicHistogram {
  readonly place: number;
  readonly #slots: Float64Array;
  readonly #at: number;
  readonly #range: ThreadRange;

  constructor(slots: Float64Array, place: number, range: ThreadRange) {
    this.place = place;
    this.#slots = slots;
    this.#at = (place & RANGE_MASK) + NamedRecord.Value;
    this.#range = range;
  }

  record(value: number): void {
    let histogram = this.#slots[this.#at]!;
    if (histogram === 0) {
      if (this.place === 0 || (histogram = this.#range.newHistogram()) === 0) return;
      this.#slots[this.#at] = histogram;
    }
    this.#range.record(histogram, value);
  }
}

/** Throws if `n` is not finite: the sum would stay invalid for the life of the process. */
function checkChange(n: number): void {
  if (!Number.isFinite(n)) throw new TypeError(`a stat cannot be changed by ${n}`);
}

/** Sets a gauge. A decrement count of -0 marks it as set without changing its value. */
function setGauge(slots: Float64Array, at: number, value: number): void {
  slots[at] = value;
  slots[at + 1] = -0;
}
