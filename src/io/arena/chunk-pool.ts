// The chunks of 64 KiB that an arena consists of: which are in use, and which of the others have pages that the kernel could
// have back.
//
// Single chunks come from the bottom, the lowest first; runs of several come from the top. So what is long and rare does not wait
// for gaps between what is short and many, and the touched pages of a quiet thread lie close together.

export const CHUNK_SHIFT = 16;
export const CHUNK_BYTES = 1 << CHUNK_SHIFT;

export const NO_CHUNK = -1;

export class ChunkPool {
  readonly count: number;
  /** Chunks in use. */
  inUse = 0;
  /** Free ones whose pages were touched and not given back. */
  touched = 0;
  /** Most chunks that were in use at a time since resetPeak(). */
  peak = 0;
  /** A bit for each chunk: it is free. */
  readonly #free: Int32Array;
  /** A bit for each chunk: it was in use since its pages were given back last. */
  readonly #dirty: Int32Array;
  /** No word of #free below this one has a bit. */
  #lowest = 0;

  constructor(count: number) {
    const words = (count + 31) >>> 5;
    this.count = count;
    this.#free = new Int32Array(words).fill(-1);
    this.#dirty = new Int32Array(words);
    if ((count & 31) !== 0) this.#free[words - 1] = (1 << (count & 31)) - 1;
  }

  /** The lowest free chunk, or NO_CHUNK. */
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

  /** The first of `length` adjacent chunks, as high as possible, or NO_CHUNK. */
  takeRun(length: number): number {
    const free = this.#free;
    let run = 0;
    for (let chunk = this.count - 1; chunk >= 0; chunk--) {
      const bits = free[chunk >>> 5]!;
      if (bits === 0) {
        // The whole word: on to the one below.
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

  /** Gives `length` chunks from `first` on back to the pool. */
  give(first: number, length: number): void {
    for (let chunk = first; chunk < first + length; chunk++) {
      this.#free[chunk >>> 5]! |= 1 << (chunk & 31);
      this.#dirty[chunk >>> 5]! |= 1 << (chunk & 31);
    }
    this.inUse -= length;
    this.touched += length;
    if (first >>> 5 < this.#lowest) this.#lowest = first >>> 5;
  }

  /** Forgets the peak: it is what is in use now. Returns what it was. */
  resetPeak(): number {
    const { peak } = this;
    this.peak = this.inUse;
    return peak;
  }

  /**
   * Gives pages of free chunks back, those of the highest ones first, until `keep` of the free chunks have some, or `most` chunks
   * were given back. `release` is called for each run of adjacent chunks. Returns how many chunks were given back.
   */
  purge(keep: number, most: number, release: (first: number, length: number) => void): number {
    const wanted = Math.min(this.touched - keep, most);
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
