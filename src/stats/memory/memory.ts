// The shared memory of all threads' stats, allocated by the primary.

import { type StatsChunks, ThreadStats, type WorkerStatsAttachment } from '../thread-stats.js';
import {
  CONTROL_WORDS,
  Control,
  PAGE_GUARD,
  PAGE_SLOTS,
  pageChunkBytes,
  RANGE_SLOTS,
  type RecordType,
  SLOT_BYTES,
} from './format.js';
import { RangeView } from './range.js';

/** A block of slots, at the same position in every thread's page. */
export interface Block {
  readonly chunk: number;
  readonly base: number;
}

/** A range is extended when it has less room than this: half a chunk. */
const SPARE_SLOTS = RANGE_SLOTS / 2;
/** Slots of address space reserved in every worker's range per histogram of a scope: its head and several decades. */
const HISTOGRAM_RESERVE_SLOTS = 512;

export class StatsMemory {
  /** Threads that count: the primary and the workers. */
  readonly threads: number;
  readonly control: SharedArrayBuffer;
  /** The primary's own ThreadStats. */
  readonly own: ThreadStats;
  readonly pageBuffers: SharedArrayBuffer[] = [];
  /** Chunks with all threads' pages and the view. */
  readonly pages: Float64Array[] = [];
  readonly rangeBuffers: SharedArrayBuffer[][];
  /** Every thread's range; [0] is the primary's own. */
  readonly ranges: RangeView[];
  readonly #words: Int32Array;
  /** All allocations in order; the version is the length. */
  readonly #growth: Growth[] = [];
  #nextSlot = PAGE_SLOTS;
  #histograms = 0;

  constructor(workers: number) {
    this.threads = workers + 1;
    this.control = new SharedArrayBuffer(this.threads * CONTROL_WORDS * 4);
    this.#words = new Int32Array(this.control);
    this.rangeBuffers = Array.from({ length: this.threads }, () => []);
    const first = this.#newRangeBuffer(0);
    this.own = new ThreadStats({ thread: 0, version: 0, control: this.control, pages: [], range: [first] });
    this.ranges = [this.own.range];
    for (let thread = 1; thread < this.threads; thread++) {
      this.ranges.push(new RangeView(this.control, thread, []));
      this.#growRange(thread);
    }
  }

  /** Identifies the allocations so far: chunksSince() of it is empty. */
  get version(): number {
    return this.#growth.length;
  }

  /** Returns a new block of `slots` slots, `histograms` of which point to histograms once these have samples. */
  newBlock(slots: number, histograms: number): Block {
    if (slots > PAGE_SLOTS - PAGE_GUARD) {
      throw new RangeError(`a layout of ${slots} slots does not fit in a page of ${PAGE_SLOTS}`);
    }
    if (this.#nextSlot + slots > PAGE_SLOTS) this.#growPages();
    if (histograms > 0) this.#reserveHistograms(histograms);
    // Taken last, so that nothing is taken if memory is exhausted.
    const base = this.#nextSlot;
    this.#nextSlot += slots;
    return { chunk: this.pages.length - 1, base };
  }

  /** Returns the view's value for a stat of a block. */
  view({ base, chunk }: Block, at: number): number {
    return this.pages[chunk]![base + at + this.threads * PAGE_SLOTS]!;
  }

  setView({ base, chunk }: Block, at: number, value: number): void {
    this.pages[chunk]![base + at + this.threads * PAGE_SLOTS] = value;
  }

  /** Allocates a record in the primary's own range, which grows as needed. */
  newRecord(slots: number, pool: RecordType): number {
    if (slots > SPARE_SLOTS) {
      throw new RangeError(`a record of ${slots * SLOT_BYTES} bytes is too large for the stats directory`);
    }
    this.#reserve(0);
    return this.own.range.allocate(slots, pool);
  }

  /** Extends the ranges of workers that have little room left. */
  reserve(): void {
    for (let thread = 1; thread < this.threads; thread++) this.#reserve(thread);
  }

  /** Returns what worker `worker` (0 is the first) needs to count, as of now. */
  attachment(worker: number): WorkerStatsAttachment {
    const thread = worker + 1;
    return {
      thread,
      version: this.version,
      control: this.control,
      pages: [...this.pageBuffers],
      range: [...this.rangeBuffers[thread]!],
    };
  }

  /** Returns the chunks allocated since a version, for the workers. */
  chunksSince(version: number): StatsChunks {
    const pages: { index: number; buffer: SharedArrayBuffer }[] = [];
    const ranges: { thread: number; index: number; buffer: SharedArrayBuffer }[] = [];
    for (const { thread, index, buffer } of this.#growth.slice(version)) {
      if (thread === undefined) pages.push({ index, buffer });
      else if (thread > 0) ranges.push({ thread, index, buffer });
    }
    return { version: this.version, pages, ranges };
  }

  /** Increments one of a thread's control words. */
  increment(thread: number, word: Control): void {
    Atomics.add(this.#words, thread * CONTROL_WORDS + word, 1);
  }

  /** Returns how many samples and names threads lost because their range was full. */
  dropped(): number {
    let dropped = 0;
    for (let thread = 0; thread < this.threads; thread++) {
      dropped += Atomics.load(this.#words, thread * CONTROL_WORDS + Control.Dropped);
    }
    return dropped;
  }

  #reserve(thread: number): void {
    const room = this.rangeBuffers[thread]!.length * RANGE_SLOTS - this.ranges[thread]!.end();
    if (room < SPARE_SLOTS) this.#growRange(thread);
  }

  #reserveHistograms(histograms: number): void {
    const sum = this.#histograms + histograms;
    for (let thread = 1; thread < this.threads; thread++) {
      while (this.rangeBuffers[thread]!.length * RANGE_SLOTS < sum * HISTOGRAM_RESERVE_SLOTS + SPARE_SLOTS) {
        this.#growRange(thread);
      }
    }
    this.#histograms = sum;
  }

  #growPages(): void {
    const buffer = new SharedArrayBuffer(pageChunkBytes(this.threads));
    const index = this.pageBuffers.push(buffer) - 1;
    this.pages.push(new Float64Array(buffer));
    this.#growth.push({ thread: undefined, index, buffer });
    this.#nextSlot = PAGE_GUARD;
    this.own.addChunks({ version: this.version, pages: [{ index, buffer }], ranges: [] });
  }

  #growRange(thread: number): void {
    this.ranges[thread]!.attach(this.#newRangeBuffer(thread));
  }

  #newRangeBuffer(thread: number): SharedArrayBuffer {
    const buffer = new SharedArrayBuffer(RANGE_SLOTS * SLOT_BYTES);
    const index = this.rangeBuffers[thread]!.push(buffer) - 1;
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
