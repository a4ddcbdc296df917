// Token buckets that all threads take from, in shared memory. A bucket has a name, and whoever says the name first begins it.
//
// A bucket that is full is like one that has never been: so nobody has to say that one is not needed any more, and a thread that
// dies leaves nothing to tidy up but the lock. When the memory is all in use, the bucket goes that is full first.

import { createHash } from 'node:crypto';
import { NO_TOKEN, type TokenBucket, type TokenRate } from './token-bucket.js';

/** Buckets that are remembered: so many that the C library maps their memory, which costs nothing then where it is not used. */
const CAPACITY = 65536;

/** Words of the head, which is a cell of its own. */
const enum Head {
  /** The number of the thread that changes which buckets there are; 0: none does. */
  Lock = 0,
  /** Cells that have been given to some bucket. */
  Used = 1,
}

/** Words of a cell; it is a cache line, so that buckets do not slow each other down. */
const enum Cell {
  /** A hash of the name, in two words. */
  Name = 0,
  /** In one word of 64 bits: the number of milliseconds at which the bucket is full. */
  FullAt = 2,
  Words = 16,
}

/** Memory for the buckets of a process. It costs nothing until it is used. */
export function tokenBucketMemory(capacity = CAPACITY): SharedArrayBuffer {
  return new SharedArrayBuffer((capacity + 1) * Cell.Words * 4);
}

/** The thread of this number has ended: it locks nobody out. */
export function forgetTokenBucketThread(memory: SharedArrayBuffer, thread: number): void {
  const words = new Int32Array(memory);
  if (Atomics.compareExchange(words, Head.Lock, thread, 0) === thread) Atomics.notify(words, Head.Lock);
}

/** One thread's access. */
export class SharedTokenBuckets {
  readonly #thread: number;
  readonly #words: Int32Array;
  /** The same memory: an atomic exchange of 64 bits is one of bigints, the only objects that taking a token makes. */
  readonly #longs: BigInt64Array;
  readonly #capacity: number;
  readonly #readClock: () => number;
  /** A number, and its bits. */
  readonly #number = new Float64Array(1);
  readonly #bits = new BigInt64Array(this.#number.buffer);

  /**
   * @param thread from 1; no two threads that live have the same
   * @param readClock tells the time now, in ms, where the times of calls are those at the beginning of a turn
   */
  constructor(memory: SharedArrayBuffer, thread: number, readClock: () => number) {
    this.#thread = thread;
    this.#readClock = readClock;
    this.#words = new Int32Array(memory);
    this.#longs = new BigInt64Array(memory);
    this.#capacity = this.#words.length / Cell.Words - 1;
  }

  /** The bucket of that name. The name says how it is limited, too: those who share one mean the same. */
  open(name: string, rate: TokenRate): TokenBucket {
    const hash = createHash('sha256').update(name).digest();
    // No bucket has the 0 of a cell that has not been used.
    return new SharedTokenBucket(this, rate, hash.readInt32LE(0) | 1, hash.readInt32LE(4));
  }

  /** Whether the cell is that of the bucket. Read its state first: who gives the cell to another bucket changes both. */
  belongs(cell: number, low: number, high: number): boolean {
    const at = cell * Cell.Words + Cell.Name;
    return Atomics.load(this.#words, at) === low && Atomics.load(this.#words, at + 1) === high;
  }

  /** The time now, in ms. */
  readClock(): number {
    return this.#readClock();
  }

  /** The bits of the time at which the bucket in this cell is full. */
  state(cell: number): bigint {
    return Atomics.load(this.#longs, longAt(cell));
  }

  /** The time that such bits are, in ms. */
  timeOf(state: bigint): number {
    this.#bits[0] = state;
    return this.#number[0]!;
  }

  /** Writes the time at which the bucket is full. False: somebody else has changed it from `state`. */
  replace(cell: number, state: bigint, fullAtMs: number): boolean {
    return Atomics.compareExchange(this.#longs, longAt(cell), state, this.#bitsOf(fullAtMs)) === state;
  }

  /** The cell of the bucket, which gets one if it has none. */
  find(low: number, high: number, nowMs: number): number {
    const words = this.#words;
    // Whoever holds the lock looks through some words. It is waited for only where a bucket is used first.
    for (let holder: number; (holder = Atomics.compareExchange(words, Head.Lock, 0, this.#thread)) !== 0; )
      Atomics.wait(words, Head.Lock, holder, 1);
    try {
      const used = Atomics.load(words, Head.Used);
      for (let cell = 1; cell <= used; cell++) if (this.belongs(cell, low, high)) return cell;
      const cell = used < this.#capacity ? used + 1 : this.#fullest();
      // Another state makes those who have just read this one look again. With any time that is over the bucket is full.
      Atomics.store(this.#longs, longAt(cell), this.#bitsOf(nowMs));
      Atomics.store(words, cell * Cell.Words + Cell.Name, low);
      Atomics.store(words, cell * Cell.Words + Cell.Name + 1, high);
      if (cell > used) Atomics.store(words, Head.Used, cell);
      return cell;
    } finally {
      Atomics.store(words, Head.Lock, 0);
      Atomics.notify(words, Head.Lock);
    }
  }

  /** The cell of the bucket that is full first. */
  #fullest(): number {
    let fullest = 1;
    let fullAtMs = Infinity;
    for (let cell = 1; cell <= this.#capacity; cell++) {
      const ms = this.timeOf(this.state(cell));
      if (ms >= fullAtMs) continue;
      fullAtMs = ms;
      fullest = cell;
    }
    return fullest;
  }

  #bitsOf(ms: number): bigint {
    this.#number[0] = ms;
    return this.#bits[0]!;
  }
}

class SharedTokenBucket implements TokenBucket {
  readonly #buckets: SharedTokenBuckets;
  readonly #rate: TokenRate;
  readonly #low: number;
  readonly #high: number;
  /** Where it was last; 0: nowhere yet. */
  #cell = 0;

  constructor(buckets: SharedTokenBuckets, rate: TokenRate, low: number, high: number) {
    this.#buckets = buckets;
    this.#rate = rate;
    this.#low = low;
    this.#high = high;
  }

  get maxTokens(): number {
    return this.#rate.maxTokens;
  }

  /** A turn that has begun long ago finds all missing that has come since, where another thread has taken a token: so it looks again. */
  take(nowMs: number): boolean {
    return this.#take(nowMs) || this.#take(this.#buckets.readClock());
  }

  #take(nowMs: number): boolean {
    for (;;) {
      const state = this.#state(nowMs);
      const fullAtMs = this.#rate.take(this.#buckets.timeOf(state), nowMs);
      if (fullAtMs === NO_TOKEN) return false;
      if (this.#buckets.replace(this.#cell, state, fullAtMs)) return true;
    }
  }

  tokens(nowMs: number): number {
    return this.#rate.tokens(this.#buckets.timeOf(this.#state(nowMs)), nowMs);
  }

  msToToken(nowMs: number): number {
    return this.#rate.msToToken(this.#buckets.timeOf(this.#state(nowMs)), nowMs);
  }

  #state(nowMs: number): bigint {
    for (;;) {
      const state = this.#buckets.state(this.#cell);
      if (this.#buckets.belongs(this.#cell, this.#low, this.#high)) return state;
      this.#cell = this.#buckets.find(this.#low, this.#high, nowMs);
    }
  }
}

/** Where the state of a cell is among words of 64 bits. */
function longAt(cell: number): number {
  return (cell * Cell.Words + Cell.FullAt) / 2;
}
