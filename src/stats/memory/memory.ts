// The shared memory of all threads' stats, as the primary allocates it and hands it out.

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

/** A block of slots, the same in every thread's page. */
export interface Block {
  readonly chunk: number;
  readonly base: number;
}

/** Room that a range always has before the primary sees that it fills: half a chunk. */
const SPARE_SLOTS = RANGE_SLOTS / 2;
/** Address space set aside in every worker's range for each histogram of a scope: its head and several decades. */
const HISTOGRAM_ROOM = 512;

export class StatsMemory {
  /** Threads that count: the primary and the workers. */
  readonly threads: number;
  readonly control: SharedArrayBuffer;
  /** The primary's own contribution. */
  readonly own: ThreadStats;
  readonly pageBuffers: SharedArrayBuffer[] = [];
  /** Chunks with all threads' pages and the view. */
  readonly pages: Float64Array[] = [];
  readonly rangeBuffers: SharedArrayBuffer[][];
  /** Every thread's range; at [0] the primary's own. */
  readonly ranges: RangeView[];
  readonly #words: Int32Array;
  /** Everything that was allocated, in order: the version is its length. */
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

  /** Counts what was allocated so far: chunksSince() of it is empty. */
  get version(): number {
    return this.#growth.length;
  }

  /** A new block of `slots` slots, `histograms` of which point to histograms once they have samples. */
  newBlock(slots: number, histograms: number): Block {
    if (slots > PAGE_SLOTS - PAGE_GUARD) {
      throw new RangeError(`a layout of ${slots} slots does not fit in a page of ${PAGE_SLOTS}`);
    }
    if (this.#nextSlot + slots > PAGE_SLOTS) this.#growPages();
    if (histograms > 0) this.#reserveHistograms(histograms);
    // Last: where there is no memory nothing is taken.
    const base = this.#nextSlot;
    this.#nextSlot += slots;
    return { chunk: this.pages.length - 1, base };
  }

  /** What the view has of a stat of a block. */
  view({ base, chunk }: Block, at: number): number {
    return this.pages[chunk]![base + at + this.threads * PAGE_SLOTS]!;
  }

  setView({ base, chunk }: Block, at: number, value: number): void {
    this.pages[chunk]![base + at + this.threads * PAGE_SLOTS] = value;
  }

  /** A record in the primary's own range, which grows as it has to. */
  newRecord(slots: number, pool: RecordType): number {
    if (slots > SPARE_SLOTS) {
      throw new RangeError(`a record of ${slots * SLOT_BYTES} bytes is too large for the stats directory`);
    }
    this.#reserve(0);
    return this.own.range.allocate(slots, pool);
  }

  /** Gives new chunks to workers whose range fills. */
  reserve(): void {
    for (let thread = 1; thread < this.threads; thread++) this.#reserve(thread);
  }

  /** What worker `worker` (0 is the first) needs to count, as of now. */
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

  /** What was allocated since that version, for the workers. */
  chunksSince(version: number): StatsChunks {
    const pages: { index: number; buffer: SharedArrayBuffer }[] = [];
    const ranges: { thread: number; index: number; buffer: SharedArrayBuffer }[] = [];
    for (const { thread, index, buffer } of this.#growth.slice(version)) {
      if (thread === undefined) pages.push({ index, buffer });
      else if (thread > 0) ranges.push({ thread, index, buffer });
    }
    return { version: this.version, pages, ranges };
  }

  /** Counts up one of a thread's control words. */
  note(thread: number, word: Control): void {
    Atomics.add(this.#words, thread * CONTROL_WORDS + word, 1);
  }

  /** Samples and names that threads lost because their range was full. */
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
      while (this.rangeBuffers[thread]!.length * RANGE_SLOTS < sum * HISTOGRAM_ROOM + SPARE_SLOTS) {
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
