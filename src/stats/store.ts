// The stats of the process as the primary keeps them: memory for every thread, the directory of scopes, merging of
// histograms, resets. Workers count through ThreadStats; anybody reads through StatsReader.

import {
  CONTROL_WORDS,
  Control,
  HistogramRecord,
  NamedRecord,
  PAGE_GUARD,
  PAGE_SLOTS,
  pageChunkBytes,
  RANGE_MASK,
  RANGE_SHIFT,
  RANGE_SLOTS,
  RecordType,
  SCOPE_TEXT,
  ScopeFlag,
  ScopeRecord,
  SLOT_BYTES,
  TEXT_BYTES,
  TEXT_BYTES_WORD,
} from './format.js';
import { Kind, type Layout, type LayoutDefinition, type StatEntry, type TextSlot } from './layout.js';
import { HistogramMerger, type HistogramValue, MergedHistogram } from './merged-histogram.js';
import { type NamedPlace, NameIndex } from './name-index.js';
import { RangeView } from './range.js';
import { StatsReader, type StatsReaderAttachment } from './reader.js';
import {
  type Scope,
  type ScopeRef,
  type StatsChunks,
  ThreadStats,
  type WorkerStatsAttachment,
} from './thread-stats.js';

export interface StatsStoreOptions {
  /** How many workers count, for the life of the process. */
  readonly workers: number;
}

export interface ScopeOptions {
  /** Left out of what is shown unless hidden stats are asked for. */
  readonly hidden?: boolean;
}

/** Room that a worker's range always has before the primary sees that it fills: half a chunk. */
const SPARE_SLOTS = RANGE_SLOTS / 2;
/** Address space set aside in every worker's range for each histogram of a scope: its head and several decades. */
const HISTOGRAM_ROOM = 512;
/** Histograms that one step of a flush looks at. */
const MERGES_PER_STEP = 256;

export class StatsStore {
  /** The primary's own contribution. */
  readonly own: ThreadStats;
  readonly #threads: number;
  readonly #control: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #pageBuffers: SharedArrayBuffer[] = [];
  readonly #pages: Float64Array[] = [];
  readonly #rangeBuffers: SharedArrayBuffer[][];
  /** Every thread's range, read; at [0] the primary's own. */
  readonly #ranges: RangeView[];
  /** Everything that was allocated, in order: the version is its length. */
  readonly #growth: Growth[] = [];
  readonly #layoutIds = new Map<Layout, number>();
  readonly #layouts: LayoutState[] = [];
  readonly #layoutEntries: (readonly StatEntry[])[] = [];
  readonly #scopes = new Map<string, ScopeState[]>();
  readonly #names: NameIndex;
  readonly #merger: HistogramMerger;
  readonly #places: Float64Array;
  #nextSlot = PAGE_SLOTS;
  #histograms = 0;
  #reader: StatsReader | undefined;

  constructor({ workers }: StatsStoreOptions) {
    this.#threads = workers + 1;
    this.#control = new SharedArrayBuffer(this.#threads * CONTROL_WORDS * 4);
    this.#words = new Int32Array(this.#control);
    this.#places = new Float64Array(this.#threads);
    this.#rangeBuffers = Array.from({ length: this.#threads }, () => []);
    const first = this.#newRangeBuffer(0);
    this.own = new ThreadStats({ thread: 0, version: 0, control: this.#control, pages: [], range: [first] });
    this.#ranges = [this.own.range];
    for (let thread = 1; thread < this.#threads; thread++) {
      this.#ranges.push(new RangeView(this.#control, thread, []));
      this.#growRange(thread);
    }
    this.#names = new NameIndex(this.#ranges);
    this.#merger = new HistogramMerger(this.#ranges, this.own.range, (slots, pool) => this.#allocate(slots, pool));
  }

  /** Counts what was allocated so far: chunksSince() of it is empty. */
  get version(): number {
    return this.#growth.length;
  }

  /**
   * A block of slots for this layout under this prefix (`cluster.foo.`), the same in every thread's page, all at 0. Added
   * again it is shared, and goes away when it is removed as often. Throws when another layout has a stat of that name there.
   */
  addScope(prefix: string, layout: Layout<LayoutDefinition>, options: ScopeOptions = {}): ScopeRef {
    const id = this.#layoutId(layout);
    const known = this.#scopes.get(prefix);
    const same = known?.find((state) => state.ref.layout === id);
    if (same !== undefined) {
      same.references++;
      return same.ref;
    }
    for (const other of known ?? []) this.#refuseSharedNames(prefix, layout, this.#layouts[other.ref.layout]!.layout);
    const { chunk, base } = this.#layouts[id]!.freeBlocks.pop() ?? this.#newBlock(this.#layouts[id]!);
    const ref: ScopeRef = { prefix, layout: id, chunk, base };
    const state = new ScopeState(ref, this.#writeRecord(ref, options.hidden === true));
    for (const entry of this.#layouts[id]!.histograms)
      state.histograms.push({ at: entry.at, merged: new MergedHistogram() });
    if (known === undefined) this.#scopes.set(prefix, [state]);
    else known.push(state);
    return ref;
  }

  /**
   * Takes back what addScope() gave. The last one frees the block, and with the prefix's last scope go the names that traffic
   * brought under it. The caller knows that no thread writes there any more.
   */
  removeScope(ref: ScopeRef): void {
    const states = this.#scopes.get(ref.prefix);
    const state = states?.find((known) => known.ref.layout === ref.layout);
    if (states === undefined || state === undefined) throw new Error(`no stats scope "${ref.prefix}" to remove`);
    if (--state.references > 0) return;
    states.splice(states.indexOf(state), 1);
    this.own.range.free(state.place);
    this.#clearBlock(state);
    this.#layouts[ref.layout]!.freeBlocks.push(state.ref);
    if (states.length === 0) {
      this.#scopes.delete(ref.prefix);
      this.#retireNames(ref.prefix);
    }
    this.#noteChange();
  }

  /** The scope as the primary writes it. */
  scope(ref: ScopeRef): Scope {
    return this.own.scope(ref);
  }

  /** Sets a text readout of a scope. */
  setText(ref: ScopeRef, at: TextSlot, text: string): void {
    const page = this.#pages[ref.chunk]!;
    const slot = ref.base + at + this.#threads * PAGE_SLOTS;
    const bytes = Buffer.byteLength(text);
    const needed = TEXT_BYTES + ((bytes + 7) >> 3);
    const own = this.own.range;
    const before = page[slot]!;
    let place = before;
    if (before === 0 || own.size(before) < needed) place = this.#allocate(Math.max(16, needed), RecordType.Text);
    else own.begin(before);
    own.setWord(place, TEXT_BYTES_WORD, bytes);
    own.setText(place, TEXT_BYTES, 0, text);
    own.commit(place);
    page[slot] = place;
    if (before !== 0 && before !== place) own.free(before);
  }

  /** What worker `worker` (0 is the first) needs to count, as of now. */
  attachment(worker: number): WorkerStatsAttachment {
    const thread = worker + 1;
    return {
      thread,
      version: this.version,
      control: this.#control,
      pages: [...this.#pageBuffers],
      range: [...this.#rangeBuffers[thread]!],
    };
  }

  /** What was allocated since: workers add it before they are given a snapshot that refers to it. */
  chunksSince(version: number): StatsChunks {
    const pages: { index: number; buffer: SharedArrayBuffer }[] = [];
    const ranges: { thread: number; index: number; buffer: SharedArrayBuffer }[] = [];
    for (const { thread, index, buffer } of this.#growth.slice(version)) {
      if (thread === undefined) pages.push({ index, buffer });
      else if (thread > 0) ranges.push({ thread, index, buffer });
    }
    return { version: this.version, pages, ranges };
  }

  /** What a reader on another thread needs, as of now. */
  readerAttachment(): StatsReaderAttachment {
    return {
      version: this.version,
      threads: this.#threads,
      control: this.#control,
      pages: [...this.#pageBuffers],
      ranges: this.#rangeBuffers.map((buffers) => [...buffers]),
      layouts: [...this.#layoutEntries],
    };
  }

  /** The primary's own reader, up to date. */
  reader(): StatsReader {
    if (this.#reader === undefined) {
      const store = this;
      this.#reader = new StatsReader({
        get version() {
          return store.version;
        },
        threads: this.#threads,
        control: this.#control,
        pages: this.#pageBuffers,
        ranges: this.#rangeBuffers,
        layouts: this.#layoutEntries,
      });
    }
    this.#reader.refresh();
    return this.#reader;
  }

  /** A counter (since the last reset) or a gauge by its full name. */
  value(name: string): number | undefined {
    const reader = this.reader();
    const found = reader.find(name);
    if (found === undefined || found.table !== found.section.tables[1]) return undefined;
    return reader.value(found.section, found.table, found.index);
  }

  /** A histogram as of the last flush by its full name; undefined when there is none or it was never merged. */
  histogram(name: string): HistogramValue | undefined {
    const reader = this.reader();
    const found = reader.find(name);
    if (found === undefined || found.table !== found.section.tables[2]) return undefined;
    return reader.histogram(found.section, found.table, found.index);
  }

  /** A text readout by its full name. */
  text(name: string): string | undefined {
    const reader = this.reader();
    const found = reader.find(name);
    if (found === undefined || found.table !== found.section.tables[0]) return undefined;
    return reader.text(found.section, found.table, found.index);
  }

  /** Merges what all threads recorded since the last call: a new interval begins. Ranges that fill are given new chunks. */
  flush(): void {
    const steps = this.flushInSteps();
    while (steps.next().done !== true);
  }

  /** As flush(), a millisecond or so at a time: the primary may answer others between the steps. */
  *flushInSteps(): Generator<void, void> {
    let merges = 0;
    for (const states of this.#scopes.values()) {
      for (const state of states) {
        this.#mergeScope(state);
        merges += state.histograms.length;
      }
      if (merges >= MERGES_PER_STEP) {
        merges = 0;
        yield;
      }
    }
    this.#names.sync();
    for (const histogram of this.#names.histograms()) {
      this.#mergeNamed(histogram.places, histogram.merged);
      if (++merges < MERGES_PER_STEP) continue;
      merges = 0;
      yield;
    }
    for (let thread = 1; thread < this.#threads; thread++) this.#reserve(thread);
  }

  /** From now on counters count from 0; nothing else changes, and sinks' deltas neither. */
  resetCounters(): void {
    for (const states of this.#scopes.values()) {
      for (const { ref } of states) {
        const page = this.#pages[ref.chunk]!;
        for (const at of this.#layouts[ref.layout]!.counters) {
          let slot = ref.base + at;
          let sum = 0;
          for (let thread = 0; thread < this.#threads; thread++, slot += PAGE_SLOTS) sum += page[slot]!;
          page[slot] = sum;
        }
      }
    }
    this.#names.sync();
    for (const named of this.#names.all()) {
      if (named.kind === Kind.Counter) this.#setNamed(named, NamedRecord.View, this.#named(named, NamedRecord.Value));
    }
  }

  /** The worker is gone: what it counted stays, what it held (its share of every gauge) is no longer there. */
  workerDied(worker: number): void {
    const thread = worker + 1;
    for (const states of this.#scopes.values()) {
      for (const { ref } of states) {
        const page = this.#pages[ref.chunk]!;
        const first = ref.base + thread * PAGE_SLOTS;
        for (const at of this.#layouts[ref.layout]!.gauges) clearGauge(page, first + at);
      }
    }
    this.#names.sync();
    for (const named of this.#names.all()) {
      if (named.kind !== Kind.Gauge || named.thread !== thread) continue;
      const slots = this.#ranges[thread]!.slots[named.place >>> RANGE_SHIFT]!;
      clearGauge(slots, (named.place & RANGE_MASK) + NamedRecord.Value);
    }
  }

  /** Samples and names that threads lost because their range was full. */
  dropped(): number {
    let dropped = 0;
    for (let thread = 0; thread < this.#threads; thread++) {
      dropped += Atomics.load(this.#words, thread * CONTROL_WORDS + Control.Dropped);
    }
    return dropped;
  }

  #layoutId(layout: Layout): number {
    let id = this.#layoutIds.get(layout);
    if (id === undefined) {
      id = this.#layouts.length;
      this.#layoutIds.set(layout, id);
      this.#layouts.push(new LayoutState(layout));
      this.#layoutEntries.push(layout.entries);
    }
    return id;
  }

  #refuseSharedNames(prefix: string, layout: Layout, other: Layout): void {
    const shared = layout.entries.find((entry) => entry.name in other.at);
    if (shared === undefined) return;
    throw new Error(
      `two layouts of the stats scope "${prefix}" have a stat "${shared.name}": one of them must leave it out`,
    );
  }

  #newBlock({ layout, histograms }: LayoutState): Block {
    this.#reserveHistograms(histograms.length);
    if (layout.slots > PAGE_SLOTS - PAGE_GUARD) {
      throw new RangeError(`a layout of ${layout.slots} slots does not fit in a page of ${PAGE_SLOTS}`);
    }
    if (this.#nextSlot + layout.slots > PAGE_SLOTS) this.#growPages();
    const base = this.#nextSlot;
    this.#nextSlot += layout.slots;
    return { chunk: this.#pages.length - 1, base };
  }

  #writeRecord(ref: ScopeRef, hidden: boolean): number {
    const own = this.own.range;
    const bytes = Buffer.byteLength(ref.prefix);
    const place = this.#allocate(SCOPE_TEXT + ((bytes + 7) >> 3), RecordType.Scope);
    own.setWord(place, ScopeRecord.Layout, ref.layout);
    own.setWord(place, ScopeRecord.Flags, hidden ? ScopeFlag.Hidden : 0);
    own.setWord(place, ScopeRecord.Chunk, ref.chunk);
    own.setWord(place, ScopeRecord.Base, ref.base);
    own.setWord(place, ScopeRecord.PrefixBytes, bytes);
    own.setText(place, SCOPE_TEXT, 0, ref.prefix);
    own.commit(place);
    this.#noteChange();
    return place;
  }

  /** Zeroes a block in every page. Histograms stay where they are, empty, for the next scope of the layout. */
  #clearBlock(state: ScopeState): void {
    const { ref } = state;
    const page = this.#pages[ref.chunk]!;
    const layout = this.#layouts[ref.layout]!;
    const view = ref.base + this.#threads * PAGE_SLOTS;
    for (let thread = 0; thread < this.#threads; thread++) {
      const first = ref.base + thread * PAGE_SLOTS;
      for (const at of layout.counters) page[first + at] = 0;
      for (const at of layout.gauges) page[first + at] = page[first + at + 1] = 0;
      for (const { at } of state.histograms) clearHistogram(this.#ranges[thread]!, page[first + at]!);
    }
    for (const at of layout.counters) page[view + at] = 0;
    for (const { at, merged } of state.histograms) {
      page[view + at] = 0;
      this.#merger.drop(merged);
    }
    for (const at of layout.texts) {
      const text = page[view + at]!;
      page[view + at] = 0;
      if (text !== 0) this.own.range.free(text);
    }
  }

  /** Names under the prefix are free from now on; their threads take the records back when they next make a name. */
  #retireNames(prefix: string): void {
    this.#names.sync();
    for (const { histogram, named } of this.#names.remove(prefix)) {
      if (histogram !== undefined) this.#merger.drop(histogram.merged);
      this.#ranges[named.thread]!.retag(named.place, RecordType.Free);
      Atomics.add(this.#words, named.thread * CONTROL_WORDS + Control.Retired, 1);
    }
  }

  #mergeScope(state: ScopeState): void {
    if (state.histograms.length === 0) return;
    const { ref } = state;
    const page = this.#pages[ref.chunk]!;
    for (const { at, merged } of state.histograms) {
      let slot = ref.base + at;
      let any = false;
      for (let thread = 0; thread < this.#threads; thread++, slot += PAGE_SLOTS) {
        if ((this.#places[thread] = page[slot]!) !== 0) any = true;
      }
      if (!any) continue;
      this.#merger.merge(this.#places, merged);
      page[slot] = merged.place;
    }
  }

  #mergeNamed(places: readonly NamedPlace[], merged: MergedHistogram): void {
    this.#places.fill(0);
    for (const named of places) this.#places[named.thread] = this.#named(named, NamedRecord.Value);
    this.#merger.merge(this.#places, merged);
    if (merged.place === 0) return;
    for (const named of places) this.#setNamed(named, NamedRecord.View, merged.place);
  }

  #named(named: NamedPlace, slot: number): number {
    return this.#ranges[named.thread]!.slot(named.place, slot);
  }

  #setNamed(named: NamedPlace, slot: number, value: number): void {
    this.#ranges[named.thread]!.slots[named.place >>> RANGE_SHIFT]![(named.place & RANGE_MASK) + slot] = value;
  }

  #noteChange(): void {
    Atomics.add(this.#words, Control.Names, 1);
  }

  /** A record in the primary's own range, which grows as it has to. */
  #allocate(slots: number, pool: RecordType): number {
    if (slots > RANGE_SLOTS / 4)
      throw new RangeError(`a record of ${slots * SLOT_BYTES} bytes is too large for the stats directory`);
    this.#reserve(0);
    return this.own.range.allocate(slots, pool);
  }

  #reserve(thread: number): void {
    const room = this.#rangeBuffers[thread]!.length * RANGE_SLOTS - this.#ranges[thread]!.end();
    if (room < SPARE_SLOTS) this.#growRange(thread);
  }

  #reserveHistograms(histograms: number): void {
    this.#histograms += histograms;
    if (histograms === 0) return;
    for (let thread = 1; thread < this.#threads; thread++) {
      while (this.#rangeBuffers[thread]!.length * RANGE_SLOTS < this.#histograms * HISTOGRAM_ROOM + SPARE_SLOTS) {
        this.#growRange(thread);
      }
    }
  }

  #growPages(): void {
    const buffer = new SharedArrayBuffer(pageChunkBytes(this.#threads));
    const index = this.#pageBuffers.push(buffer) - 1;
    this.#pages.push(new Float64Array(buffer));
    this.#growth.push({ thread: undefined, index, buffer });
    this.#nextSlot = PAGE_GUARD;
    this.own.addChunks({ version: this.version, pages: [{ index, buffer }], ranges: [] });
  }

  #growRange(thread: number): void {
    this.#ranges[thread]!.attach(this.#newRangeBuffer(thread));
  }

  #newRangeBuffer(thread: number): SharedArrayBuffer {
    const buffer = new SharedArrayBuffer(RANGE_SLOTS * SLOT_BYTES);
    const index = this.#rangeBuffers[thread]!.push(buffer) - 1;
    this.#growth.push({ thread, index, buffer });
    return buffer;
  }
}

interface Growth {
  /** Undefined for a chunk of pages. */
  readonly thread: number | undefined;
  readonly index: number;
  readonly buffer: SharedArrayBuffer;
}

interface Block {
  readonly chunk: number;
  readonly base: number;
}

class LayoutState {
  readonly layout: Layout;
  readonly counters: readonly number[];
  readonly gauges: readonly number[];
  readonly texts: readonly number[];
  readonly histograms: readonly StatEntry[];
  /** Blocks serve scopes of one layout only, so that the histograms they point to fit the next scope. */
  readonly freeBlocks: Block[] = [];

  constructor(layout: Layout) {
    const slotsOf = (kind: Kind) => layout.entries.filter((entry) => entry.kind === kind).map((entry) => entry.at);
    this.layout = layout;
    this.counters = slotsOf(Kind.Counter);
    this.gauges = slotsOf(Kind.Gauge);
    this.texts = slotsOf(Kind.Text);
    this.histograms = layout.entries.filter((entry) => entry.kind === Kind.Histogram);
  }
}

class ScopeState {
  readonly ref: ScopeRef;
  /** Its record in the directory. */
  readonly place: number;
  readonly histograms: { readonly at: number; readonly merged: MergedHistogram }[] = [];
  references = 1;

  constructor(ref: ScopeRef, place: number) {
    this.ref = ref;
    this.place = place;
  }
}

/** Takes a thread's share out of a gauge that was changed, and leaves it changed. */
function clearGauge(slots: Float64Array, at: number): void {
  if (slots[at] === 0 && Object.is(slots[at + 1], 0)) return;
  slots[at] = 0;
  slots[at + 1] = -0;
}

function clearHistogram(range: RangeView, place: number): void {
  if (place === 0) return;
  const slots = range.slots[place >>> RANGE_SHIFT]!;
  const at = place & RANGE_MASK;
  slots.fill(0, at + HistogramRecord.Count, at + HistogramRecord.Decades);
  for (let i = at + HistogramRecord.Decades; i < at + range.size(place); i++) {
    const decade = slots[i]!;
    if (decade === 0) continue;
    const first = decade & RANGE_MASK;
    range.slots[decade >>> RANGE_SHIFT]!.fill(0, first + 1, first + range.size(decade));
  }
}
