// The pool of an arena's chunks of 64 KiB. It tracks which chunks are in use, and which free chunks have pages that can be returned to the
// kernel.
//
// Single chunks are taken from the bottom, the lowest first; runs are taken from the top. So long, rare runs do not need gaps among many
// single chunks, and the touched pages of a quiet thread are close together.

export const CHUNK_SHIFT = 16;
export const CHUNK_BYTES = 1 << CHUNK_SHIFT;

export const NO_CHUNK = -1;

export class ChunkPool {
  readonly count: number;
  /** Chunks in use. */
  inUse = 0;
  /** Free chunks whose pages were touched and not returned to the kernel. */
  touched = 0;
  /** Maximum number of chunks in use since resetPeak(). */
  peak = 0;
  /** A bit for each chunk: set if it is free. */
  readonly #free: Int32Array;
  /** A bit for each chunk: set if it was used since its pages were last returned to the kernel. */
  readonly #dirty: Int32Array;
  /** All words of #free below this one are 0. */
  #lowest = 0;

  constructor(count: number) {
    const words = (count + 31) >>> 5;
    this.count = count;
    this.#free = new Int32Array(words).fill(-1);
    this.#dirty = new Int32Array(words);
    if ((count & 31) !== 0) this.#free[words - 1] = (1 << (count & 31)) - 1;
  }

  /** Takes the lowest free chunk. Returns NO_CHUNK if there is none. */
  take(): number {
    const free = this.#free;
    for (let word = this.#lowest; word < free.length; word++) {
      const bits = free[word]!;
      if (bits === 0) continue;
      this.#lowest = word;
      const chunk = (word << 5) + 31 - Math.clz32(bits & -bits);
      this.#claim(chunk);
      this.#addInUse(1);
      return chunk;
    }
    this.#lowest = free.length;
    return NO_CHUNK;
  }

  /** Takes `length` adjacent chunks, as high as possible. Returns the first one, or NO_CHUNK. */
  takeRun(length: number): number {
    const free = this.#free;
    let run = 0;
    for (let chunk = this.count - 1; chunk >= 0; chunk--) {
      const bits = free[chunk >>> 5]!;
      if (bits === 0) {
        // No chunk of this word is free: continue with the word below.
        run = 0;
        chunk &= ~31;
      } else if ((bits >>> (chunk & 31)) & 1) {
        if (++run < length) continue;
        for (let index = 0; index < length; index++) this.#claim(chunk + index);
        this.#addInUse(length);
        return chunk;
      } else run = 0;
    }
    return NO_CHUNK;
  }

  /** Returns `length` chunks from `first` on to the pool. */
  release(first: number, length: number): void {
    for (let chunk = first; chunk < first + length; chunk++) {
      this.#free[chunk >>> 5]! |= 1 << (chunk & 31);
      this.#dirty[chunk >>> 5]! |= 1 << (chunk & 31);
    }
    this.inUse -= length;
    this.touched += length;
    if (first >>> 5 < this.#lowest) this.#lowest = first >>> 5;
  }

  /** Sets the peak to the chunks in use now. Returns the former peak. */
  resetPeak(): number {
    const { peak } = this;
    this.peak = this.inUse;
    return peak;
  }

  /**
   * Releases pages of free chunks, the highest ones first, until only `keep` free chunks have pages or `maxChunks` chunks were released.
   * Calls `release` for each run of adjacent chunks. Returns how many chunks were released.
   */
  purge(keep: number, maxChunks: number, release: (first: number, length: number) => void): number {
    const wanted = Math.min(this.touched - keep, maxChunks);
    let purged = 0;
    let end = 0;
    let start = 0;
    for (let chunk = this.count - 1; chunk >= 0 && purged < wanted; chunk--) {
      const word = chunk >>> 5;
      const bits = this.#free[word]! & this.#dirty[word]!;
      if (bits === 0) {
        chunk &= ~31;
        continue;
      }
      if (((bits >>> (chunk & 31)) & 1) === 0) continue;
      this.#dirty[word]! &= ~(1 << (chunk & 31));
      purged++;
      if (chunk !== start - 1) {
        if (end > start) release(start, end - start);
        end = chunk + 1;
      }
      start = chunk;
    }
    if (end > start) release(start, end - start);
    this.touched -= purged;
    return purged;
  }

  #claim(chunk: number): void {
    const bit = 1 << (chunk & 31);
    this.#free[chunk >>> 5]! &= ~bit;
    if ((this.#dirty[chunk >>> 5]! & bit) !== 0) this.touched--;
    this.#dirty[chunk >>> 5]! &= ~bit;
  }

  #addInUse(length: number): void {
    this.inUse += length;
    if (this.inUse > this.peak) this.peak = this.inUse;
  }
}
