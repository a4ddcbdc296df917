// The stats of the process on the primary: adds and removes scopes, merges histograms, resets counters, and removes a dead
// worker's share of gauges. Workers count through ThreadStats; any thread reads through StatsReader.

import { runSync } from '../common/time/next-turn.js';
import { HistogramMerger, type HistogramValue } from './histograms/merged-histogram.js';
import {
  type CounterSlot,
  type GaugeSlot,
  Kind,
  type Layout,
  type LayoutDefinition,
  type StatEntry,
  type TextSlot,
} from './layout.js';
import { clearGauges, clearNamedGauge, freeName } from './memory/foreign-writes.js';
import {
  NamedRecord,
  PAGE_SLOTS,
  RANGE_MASK,
  RANGE_SHIFT,
  RecordType,
  TEXT_BYTES,
  TEXT_BYTES_WORD,
} from './memory/format.js';
import { StatsMemory } from './memory/memory.js';
import { type NamedHistogram, type NamedPlace, NameIndex } from './name-index.js';
import {
  blockValue,
  type FoundStat,
  type StatsExtent,
  StatsReader,
  type StatsReaderAttachment,
  slotSum,
} from './read/reader.js';
import { Pass } from './read/section.js';
import { RecentLookups } from './recent-lookups.js';
import { type KnownScope, ScopeDirectory } from './scope-directory.js';
import { scopePrefix } from './scope-prefix.js';
import { DEFAULT_SETTINGS, type StatsSettings } from './settings/settings.js';
import type { Scope, ScopeRef, StatsChunks, ThreadStats, WorkerStatsAttachment } from './thread-stats.js';

export interface StatsStoreOptions {
  /** Number of counting workers, constant for the life of the process. */
  readonly workers: number;
  /** Default: nothing is configured. */
  readonly settings?: StatsSettings;
}

/** A scope whose stats exist with value 0 before traffic. */
export interface ScopeRequest {
  /** Including the final dot: `http.ingress.` */
  readonly prefix: string;
  readonly layout: Layout;
}

export interface ScopeOptions {
  /** Not shown unless hidden stats are requested. */
  readonly hidden?: boolean;
}

/** The primary. */
const OWN_THREAD = 0;
/** Histograms per step of a flush. */
const MERGES_PER_STEP = 256;
/** Counters per step of a reset. */
const RESETS_PER_STEP = 10_000;

export class StatsStore {
  /** The primary's own ThreadStats. */
  readonly own: ThreadStats;
  readonly settings: StatsSettings;
  readonly recentLookups: RecentLookups;
  /** Called after each scope was added, with its layout. */
  scopeAdded: ((ref: ScopeRef, layout: Layout) => void) | undefined;
  readonly #memory: StatsMemory;
  readonly #merger: HistogramMerger;
  readonly #scopes: ScopeDirectory;
  readonly #names: NameIndex;
  /** The places of one histogram in all threads' ranges, while it is merged. */
  readonly #places: Float64Array;
  #reader: StatsReader | undefined;

  constructor({ workers, settings = DEFAULT_SETTINGS }: StatsStoreOptions) {
    this.settings = settings;
    const memory = new StatsMemory(workers);
    this.#memory = memory;
    this.own = memory.own;
    this.#merger = new HistogramMerger(memory);
    this.#scopes = new ScopeDirectory(memory, this.#merger);
    this.recentLookups = new RecentLookups(memory.control, memory.threads, () => this.#names.sync());
    this.#names = new NameIndex(memory.ranges, this.recentLookups);
    this.#places = new Float64Array(memory.threads);
  }

  /**
   * Adds a block of slots for this layout under this prefix (`cluster.foo.`), the same in every thread's page, all 0. A
   * block that is added again is shared, and is removed after as many calls of removeScope(). The ref's prefix is
   * normalized: see scopePrefix().
   * @throws Error when another layout has a stat of the same name under this prefix
   */
  addScope(prefix: string, layout: Layout<LayoutDefinition>, options: ScopeOptions = {}): ScopeRef {
    const written = scopePrefix(prefix);
    this.recentLookups.count(written);
    const ref = this.#scopes.add(written, layout, options.hidden === true);
    this.scopeAdded?.(ref, layout);
    return ref;
  }

  /** Shows the stats of a scope that was added as hidden, until hide() was called as often. Throws a RangeError when memory is short. */
  show(ref: ScopeRef): void {
    this.#scopes.show(ref);
  }

  /** Reverts one call of show(). Stats stay visible when memory is short. */
  hide(ref: ScopeRef): void {
    this.#scopes.hide(ref);
  }

  /** Adds several scopes. Throws, with none of them added, if one cannot be added. */
  addScopes(requests: readonly ScopeRequest[]): ScopeRef[] {
    const added: ScopeRef[] = [];
    try {
      for (const { layout, prefix } of requests) added.push(this.addScope(prefix, layout));
    } catch (error) {
      for (const ref of added) this.removeScope(ref);
      throw error;
    }
    return added;
  }

  /**
   * Converts a counter or gauge that the primary created by name under the scope's prefix into the scope's stat, which
   * continues from its value. No-op if there is no such name; a name of another kind is removed. Handles of the name become
   * invalid.
   */
  adoptName(ref: ScopeRef, { at, kind, name }: StatEntry): void {
    this.#names.sync();
    const own = this.#names.removeOne(ref.prefix, name, OWN_THREAD);
    if (own === undefined) return;
    if (own.kind === kind) {
      const scope = this.scope(ref);
      scope.add(at, this.#named(own, NamedRecord.Value));
      if (kind === Kind.Gauge) scope.subtract(at, this.#named(own, NamedRecord.Downs));
      else this.#memory.setView(ref, at, this.#memory.view(ref, at) + this.#named(own, NamedRecord.View));
    }
    freeName(this.#memory, own);
  }

  /**
   * Removes one reference of a scope. The last one frees the block, and with the prefix's last scope the names that traffic
   * created under it are removed. The caller ensures that no thread writes there any more.
   */
  removeScope(ref: ScopeRef): void {
    if (this.#scopes.remove(ref)) this.#retireNames(ref.prefix);
  }

  /** Returns the scopes with exactly this prefix. */
  scopesUnder(prefix: string): { readonly ref: ScopeRef; readonly layout: Layout }[] {
    return this.#scopes.under(prefix).map(({ ref, layout }) => ({ ref, layout: layout.layout }));
  }

  /** Returns the scope for writes of the primary. */
  scope(ref: ScopeRef): Scope {
    return this.own.scope(ref);
  }

  /** Sets a text readout of a scope. */
  setText(ref: ScopeRef, at: TextSlot, text: string): void {
    const bytes = Buffer.byteLength(text);
    const needed = TEXT_BYTES + ((bytes + 7) >> 3);
    const own = this.own.range;
    const before = this.#memory.view(ref, at);
    let place = before;
    if (before === 0 || own.size(before) < needed) {
      place = this.#memory.newRecord(Math.max(16, needed), RecordType.Text);
    } else {
      own.begin(before);
    }
    own.setWord(place, TEXT_BYTES_WORD, bytes);
    own.setText(place, TEXT_BYTES, 0, text);
    own.commit(place);
    this.#memory.setView(ref, at, place);
    if (before !== 0 && before !== place) own.free(before);
  }

  /** Approximate number of stats: names that traffic created are counted once per thread, as of the last flush. */
  get size(): number {
    return this.#scopes.size + this.#names.size;
  }

  /** Identifies the memory allocated so far: chunksSince() of it is empty. */
  get version(): number {
    return this.#memory.version;
  }

  /** Returns what worker `worker` (0 is the first) needs to count, as of now. */
  attachment(worker: number): WorkerStatsAttachment {
    return this.#memory.attachment(worker);
  }

  /** Returns memory allocated since a version. Workers must add it before they get a snapshot that refers to it. */
  chunksSince(version: number): StatsChunks {
    return this.#memory.chunksSince(version);
  }

  /** What a reader's attachment covers now. */
  get extent(): StatsExtent {
    return { version: this.#memory.version, layoutCount: this.#scopes.layoutEntries.length };
  }

  /** Returns what a reader on another thread needs, as of now. */
  readerAttachment(): StatsReaderAttachment {
    const { settings } = this;
    const { version, threads, control, pageBuffers, rangeBuffers } = this.#memory;
    const ranges = rangeBuffers.map((buffers) => [...buffers]);
    return {
      version,
      threads,
      control,
      pages: [...pageBuffers],
      ranges,
      layouts: [...this.#scopes.layoutEntries],
      settings,
    };
  }

  /** Returns the primary's own reader, refreshed. Large answers should be rendered on another thread. */
  reader(): StatsReader {
    if (this.#reader === undefined) {
      const memory = this.#memory;
      this.#reader = new StatsReader({
        get version() {
          return memory.version;
        },
        threads: memory.threads,
        control: memory.control,
        pages: memory.pageBuffers,
        ranges: memory.rangeBuffers,
        layouts: this.#scopes.layoutEntries,
        settings: this.settings,
      });
    }
    this.#reader.refresh();
    return this.#reader;
  }

  /** Returns a counter (since the last reset) or a gauge by its full name. */
  value(name: string): number | undefined {
    const found = this.#find(name, Pass.Values);
    return found && this.reader().value(found.section, found.table, found.index);
  }

  /** Returns a counter or a gauge of a scope without looking up its name. */
  valueOf(ref: ScopeRef, at: CounterSlot | GaugeSlot): number {
    const entry = this.#scopes.layoutEntries[ref.layout]!.find((known) => known.at === at)!;
    return this.valueAt(ref, at, entry.kind);
  }

  /** Returns the same for a known kind, without any lookup. */
  valueAt({ chunk, base }: Pick<ScopeRef, 'chunk' | 'base'>, at: number, kind: Kind): number {
    return blockValue(this.#memory.pages[chunk]!, base + at, this.#memory.threads, kind);
  }

  /** Returns the same, but a counter since the start of the process, independent of resets. */
  totalAt({ chunk, base }: Pick<ScopeRef, 'chunk' | 'base'>, at: number, kind: Kind): number {
    const { pages, threads } = this.#memory;
    const page = pages[chunk]!;
    return kind === Kind.Counter ? slotSum(page, base + at, threads) : blockValue(page, base + at, threads, kind);
  }

  /** Returns a histogram by its full name as of the last flush; undefined if there is none or it was never merged. */
  histogram(name: string): HistogramValue | undefined {
    const found = this.#find(name, Pass.Histograms);
    return found && this.reader().histogram(found.section, found.table, found.index);
  }

  /** Returns a text readout by its full name. */
  text(name: string): string | undefined {
    const found = this.#find(name, Pass.Texts);
    return found && this.reader().text(found.section, found.table, found.index);
  }

  /**
   * Merges what all threads recorded since the last call and begins a new interval. Extends ranges with little room left.
   */
  flush(): void {
    runSync(this.flushInSteps());
  }

  /** Does the same as flush() in steps of about a millisecond, so that the primary can serve other work between them. */
  *flushInSteps(): Generator<void, void> {
    let merges = 0;
    for (const scope of this.#scopes.all()) {
      this.#mergeScope(scope);
      merges += scope.merged.length;
      if (merges < MERGES_PER_STEP) continue;
      merges = 0;
      yield;
    }
    this.#names.sync();
    for (const histogram of this.#names.histograms()) {
      this.#mergeNamed(histogram);
      if (++merges < MERGES_PER_STEP) continue;
      merges = 0;
      yield;
    }
    this.#memory.reserve();
  }

  /** Extends ranges with little room left, as a flush does at its end. */
  reserve(): void {
    this.#memory.reserve();
  }

  /** Resets counters to 0 for readers and clears recent lookups. Other stats and the deltas of sinks are unaffected. */
  resetCounters(): void {
    runSync(this.resetInSteps());
  }

  /** Does the same as resetCounters() in steps of about a millisecond. */
  *resetInSteps(): Generator<void, void> {
    this.recentLookups.clear();
    const { pages, threads } = this.#memory;
    let resets = 0;
    for (const { ref, layout } of this.#scopes.all()) {
      const page = pages[ref.chunk]!;
      for (const at of layout.counters) this.#memory.setView(ref, at, slotSum(page, ref.base + at, threads));
      resets += layout.counters.length;
      if (resets < RESETS_PER_STEP) continue;
      resets = 0;
      yield;
    }
    this.#names.sync();
    for (const named of this.#names.all()) {
      if (named.kind !== Kind.Counter) continue;
      this.#setView(named, this.#named(named, NamedRecord.Value));
      if (++resets < RESETS_PER_STEP) continue;
      resets = 0;
      yield;
    }
  }

  /** Called after a worker has died. Its counts stay; its share of every gauge is removed. */
  workerDied(worker: number): void {
    const thread = worker + 1;
    for (const { ref, layout } of this.#scopes.all()) clearGauges(this.#memory, ref, layout.gauges, thread);
    this.#names.sync();
    for (const named of this.#names.all()) {
      if (named.kind === Kind.Gauge && named.thread === thread) clearNamedGauge(this.#memory, named);
    }
  }

  /** Returns how many samples and names threads lost because their range was full. */
  dropped(): number {
    return this.#memory.dropped();
  }

  #find(name: string, pass: Pass): FoundStat | undefined {
    this.recentLookups.count(name);
    const found = this.reader().find(name);
    return found !== undefined && found.table === found.section.tables[pass] ? found : undefined;
  }

  /** Frees the names under the prefix. Their threads reclaim the records when they next create a name. */
  #retireNames(prefix: string): void {
    this.#names.sync();
    for (const { histogram, named } of this.#names.remove(prefix)) {
      if (histogram !== undefined) this.#merger.drop(histogram.merged);
      freeName(this.#memory, named);
    }
  }

  #mergeScope({ ref, layout, merged }: KnownScope): void {
    const page = this.#memory.pages[ref.chunk]!;
    const places = this.#places;
    for (let i = 0; i < merged.length; i++) {
      const at = layout.histograms[i]!;
      let slot = ref.base + at;
      let any = false;
      for (let thread = 0; thread < places.length; thread++, slot += PAGE_SLOTS) {
        if ((places[thread] = page[slot]!) !== 0) any = true;
      }
      if (!any) continue;
      this.#merger.merge(places, merged[i]!);
      this.#memory.setView(ref, at, merged[i]!.place);
    }
  }

  #mergeNamed({ places, merged }: NamedHistogram): void {
    this.#places.fill(0);
    for (const named of places) this.#places[named.thread] = this.#named(named, NamedRecord.Value);
    this.#merger.merge(this.#places, merged);
    if (merged.place === 0) return;
    for (const named of places) this.#setView(named, merged.place);
  }

  #named(named: NamedPlace, slot: number): number {
    return this.#memory.ranges[named.thread]!.slot(named.place, slot);
  }

  #setView(named: NamedPlace, value: number): void {
    const slots = this.#memory.ranges[named.thread]!.slots[named.place >>> RANGE_SHIFT]!;
    slots[(named.place & RANGE_MASK) + NamedRecord.View] = value;
  }
}
