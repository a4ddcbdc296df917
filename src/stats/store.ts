// The stats of the process as the primary keeps them: scopes come and go, histograms are merged, counters reset, and what a
// dead worker held is taken out. Workers count through ThreadStats; anybody reads through StatsReader.

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
  /** How many workers count, for the life of the process. */
  readonly workers: number;
  /** Left out: nothing is configured. */
  readonly settings?: StatsSettings;
}

/** A scope whose stats exist at 0 before traffic. */
export interface ScopeRequest {
  /** With the final dot: `http.ingress.` */
  readonly prefix: string;
  readonly layout: Layout;
}

export interface ScopeOptions {
  /** Left out of what is shown unless hidden stats are asked for. */
  readonly hidden?: boolean;
}

/** The primary's. */
const OWN_THREAD = 0;
/** Histograms that one step of a flush looks at. */
const MERGES_PER_STEP = 256;
/** Counters that one step of a reset sets to 0. */
const RESETS_PER_STEP = 10_000;

export class StatsStore {
  /** The primary's own contribution. */
  readonly own: ThreadStats;
  readonly settings: StatsSettings;
  readonly recentLookups: RecentLookups;
  /** Told of each scope that is added, once it is there, and of its layout. */
  scopeAdded: ((ref: ScopeRef, layout: Layout) => void) | undefined;
  readonly #memory: StatsMemory;
  readonly #merger: HistogramMerger;
  readonly #scopes: ScopeDirectory;
  readonly #names: NameIndex;
  /** Places of one histogram in all threads' ranges, while it is merged. */
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
   * A block of slots for this layout under this prefix (`cluster.foo.`), the same in every thread's page, all at 0. Added
   * again it is shared, and goes away when it is removed as often. Throws when another layout has a stat of that name there.
   * The scope's own prefix is that of its ref: see scopePrefix().
   */
  addScope(prefix: string, layout: Layout<LayoutDefinition>, options: ScopeOptions = {}): ScopeRef {
    const written = scopePrefix(prefix);
    this.recentLookups.count(written);
    const ref = this.#scopes.add(written, layout, options.hidden === true);
    this.scopeAdded?.(ref, layout);
    return ref;
  }

  /** Scopes that belong together: throws, with none of them added, when one cannot be had. */
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
   * A counter or gauge that the primary has brought as a name under the scope's prefix is the scope's from now on, which goes on
   * from its value. Nothing when there is no such name; one of another kind goes away. Handles of the name are void.
   */
  takeName(ref: ScopeRef, { at, kind, name }: StatEntry): void {
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
   * Takes back what addScope() gave. The last one frees the block, and with the prefix's last scope go the names that traffic
   * brought under it. The caller knows that no thread writes there any more.
   */
  removeScope(ref: ScopeRef): void {
    if (this.#scopes.remove(ref)) this.#retireNames(ref.prefix);
  }

  /** The scopes with exactly this prefix. */
  scopesUnder(prefix: string): { readonly ref: ScopeRef; readonly layout: Layout }[] {
    return this.#scopes.under(prefix).map(({ ref, layout }) => ({ ref, layout: layout.layout }));
  }

  /** The scope as the primary writes it. */
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

  /** How many stats there are, about: names that traffic brought count as of the last flush, once a thread. */
  get size(): number {
    return this.#scopes.size + this.#names.size;
  }

  /** Counts the memory that was allocated so far: chunksSince() of it is empty. */
  get version(): number {
    return this.#memory.version;
  }

  /** What worker `worker` (0 is the first) needs to count, as of now. */
  attachment(worker: number): WorkerStatsAttachment {
    return this.#memory.attachment(worker);
  }

  /** Memory that was allocated since: workers add it before they are given a snapshot that refers to it. */
  chunksSince(version: number): StatsChunks {
    return this.#memory.chunksSince(version);
  }

  /** What a reader's attachment covers now. */
  get extent(): StatsExtent {
    return { version: this.#memory.version, layoutCount: this.#scopes.layoutEntries.length };
  }

  /** What a reader on another thread needs, as of now. */
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

  /** The primary's own reader, up to date. What is large is better rendered by another thread. */
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

  /** A counter (since the last reset) or a gauge by its full name. */
  value(name: string): number | undefined {
    const found = this.#find(name, Pass.Values);
    return found && this.reader().value(found.section, found.table, found.index);
  }

  /** A counter or a gauge of a scope, without looking up its name. */
  valueOf(ref: ScopeRef, at: CounterSlot | GaugeSlot): number {
    const entry = this.#scopes.layoutEntries[ref.layout]!.find((known) => known.at === at)!;
    return this.valueAt(ref, at, entry.kind);
  }

  /** The same for who knows the kind: nothing is looked up at all. */
  valueAt({ chunk, base }: Pick<ScopeRef, 'chunk' | 'base'>, at: number, kind: Kind): number {
    return blockValue(this.#memory.pages[chunk]!, base + at, this.#memory.threads, kind);
  }

  /** The same, but a counter since the process began, whatever was reset. */
  totalAt({ chunk, base }: Pick<ScopeRef, 'chunk' | 'base'>, at: number, kind: Kind): number {
    const { pages, threads } = this.#memory;
    const page = pages[chunk]!;
    return kind === Kind.Counter ? slotSum(page, base + at, threads) : blockValue(page, base + at, threads, kind);
  }

  /** A histogram as of the last flush by its full name; undefined when there is none or it was never merged. */
  histogram(name: string): HistogramValue | undefined {
    const found = this.#find(name, Pass.Histograms);
    return found && this.reader().histogram(found.section, found.table, found.index);
  }

  /** A text readout by its full name. */
  text(name: string): string | undefined {
    const found = this.#find(name, Pass.Texts);
    return found && this.reader().text(found.section, found.table, found.index);
  }

  /** Merges what all threads recorded since the last call: a new interval begins. Ranges that fill are given new chunks. */
  flush(): void {
    runSync(this.flushInSteps());
  }

  /** As flush(), a millisecond or so at a time: the primary may answer others between the steps. */
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

  /** Gives new chunks to ranges that fill, as a flush does at its end. */
  reserve(): void {
    this.#memory.reserve();
  }

  /** From now on counters count from 0, and recent lookups are forgotten; nothing else changes, and sinks' deltas neither. */
  resetCounters(): void {
    runSync(this.resetInSteps());
  }

  /** As resetCounters(), a millisecond or so at a time. */
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

  /** The worker is gone: what it counted stays, what it held (its share of every gauge) is no longer there. */
  workerDied(worker: number): void {
    const thread = worker + 1;
    for (const { ref, layout } of this.#scopes.all()) clearGauges(this.#memory, ref, layout.gauges, thread);
    this.#names.sync();
    for (const named of this.#names.all()) {
      if (named.kind === Kind.Gauge && named.thread === thread) clearNamedGauge(this.#memory, named);
    }
  }

  /** Samples and names that threads lost because their range was full. */
  dropped(): number {
    return this.#memory.dropped();
  }

  #find(name: string, pass: Pass): FoundStat | undefined {
    this.recentLookups.count(name);
    const found = this.reader().find(name);
    return found !== undefined && found.table === found.section.tables[pass] ? found : undefined;
  }

  /** Names under the prefix are free from now on; their threads take the records back when they next make a name. */
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
