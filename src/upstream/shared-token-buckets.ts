// Token buckets in shared memory that all threads use. A bucket is identified by a name, and created by the first thread that
// uses it.
//
// A full bucket is equivalent to a new one. So unused buckets need no release, and a dead thread leaves nothing to clean up but
// the lock. The cells form sets, and a bucket's name determines its set: clients choose names (values of rate limit descriptors), and
// must not be able to make searches long or to replace a chosen bucket. In a full set a new bucket replaces the one that is full first.

import { createHash, randomBytes } from 'node:crypto';
import { NO_TOKEN, type TokenBucket, type TokenRate } from './token-bucket.js';

/** Buckets that fit. With this size the C library maps the memory, so unused parts cost nothing. */
const CAPACITY = 65536;
/** Cells of a set. */
const SET_CELLS = 16;

/** Words of the head, which occupies the first cell. */
const enum Head {
  /** The number of the thread that is adding a bucket; 0: none. */
  Lock = 0,
  /** A random number of two words. With it nobody knows which names share a set. */
  Salt = 2,
}

const SALT_BYTES = 8;

/** Words of a cell. A cell is a cache line, which avoids false sharing between buckets. */
const enum Cell {
  /** A hash of the name, in two words. */
  Name = 0,
  /** A 64-bit word: the time in ms at which the bucket is full. */
  FullAt = 2,
  Words = 16,
}

/** Allocates memory for the buckets of a process. Unused parts cost nothing. */
export function tokenBucketMemory(capacity = CAPACITY): SharedArrayBuffer {
  const memory = new SharedArrayBuffer((capacity + 1) * Cell.Words * 4);
  saltOf(memory).set(randomBytes(SALT_BYTES));
  return memory;
}

function saltOf(memory: SharedArrayBuffer): Uint8Array {
  return new Uint8Array(memory, Head.Salt * 4, SALT_BYTES);
}

/** Releases the lock if the ended thread `thread` held it. */
export function forgetTokenBucketThread(memory: SharedArrayBuffer, thread: number): void {
  const words = new Int32Array(memory);
  if (Atomics.compareExchange(words, Head.Lock, thread, 0) === thread) Atomics.notify(words, Head.Lock);
}

/** One thread's access to the buckets. */
export class SharedTokenBuckets {
  readonly #thread: number;
  readonly #words: Int32Array;
  /** The same memory: a 64-bit atomic exchange requires bigints, the only objects that taking a token allocates. */
  readonly #longs: BigInt64Array;
  readonly #setCells: number;
  readonly #sets: number;
  readonly #salt: Uint8Array;
  readonly #readClock: () => number;
  /** A float64 and its bits. */
  readonly #number = new Float64Array(1);
  readonly #bits = new BigInt64Array(this.#number.buffer);

  /**
   * @param thread from 1; unique among live threads
   * @param readClock returns the current time in ms; the times passed to calls are those at the beginning of a turn
   */
  constructor(memory: SharedArrayBuffer, thread: number, readClock: () => number) {
    this.#thread = thread;
    this.#readClock = readClock;
    this.#words = new Int32Array(memory);
    this.#longs = new BigInt64Array(memory);
    const capacity = this.#words.length / Cell.Words - 1;
    this.#setCells = Math.min(SET_CELLS, capacity);
    this.#sets = Math.floor(capacity / this.#setCells);
    this.#salt = Uint8Array.from(saltOf(memory));
  }

  /** Returns the bucket of that name. The name must include the rate, because all users of a name share one bucket. */
  open(name: string, rate: TokenRate): TokenBucket {
    const hash = createHash('sha256').update(this.#salt).update(name).digest();
    // The low word is never 0, which marks an unused cell.
    return new SharedTokenBucket(this, rate, hash.readInt32LE(0) | 1, hash.readInt32LE(4));
  }

  /** Returns whether the cell holds the bucket. Read the state first: assigning the cell to another bucket changes both. */
  belongs(cell: number, low: number, high: number): boolean {
    const at = cell * Cell.Words + Cell.Name;
    return Atomics.load(this.#words, at) === low && Atomics.load(this.#words, at + 1) === high;
  }

  /** Returns the current time in ms. */
  readClock(): number {
    return this.#readClock();
  }

  /** Returns the bits of the time at which the cell's bucket is full. */
  state(cell: number): bigint {
    return Atomics.load(this.#longs, longAt(cell));
  }

  /** Converts such bits to a time in ms. */
  timeOf(state: bigint): number {
    this.#bits[0] = state;
    return this.#number[0]!;
  }

  /** Sets the time at which the bucket is full. Returns false when the state is no longer `state`. */
  replace(cell: number, state: bigint, fullAtMs: number): boolean {
    return Atomics.compareExchange(this.#longs, longAt(cell), state, this.#bitsOf(fullAtMs)) === state;
  }

  /** Returns the cell of the bucket. Assigns one if it has none. */
  find(low: number, high: number, nowMs: number): number {
    const words = this.#words;
    // The lock is held only while a few words are scanned, and is only needed at the first use of a bucket.
    const first = this.#firstOfSet(low);
    for (let holder: number; (holder = Atomics.compareExchange(words, Head.Lock, 0, this.#thread)) !== 0; )
      Atomics.wait(words, Head.Lock, holder, 1);
    try {
      const end = first + this.#setCells;
      for (let cell = first; cell < end; cell++) if (this.belongs(cell, low, high)) return cell;
      const cell = this.#fullest(first, end);
      // The changed state makes threads that have just read this cell retry. Any past time means a full bucket.
      Atomics.store(this.#longs, longAt(cell), this.#bitsOf(nowMs));
      Atomics.store(words, cell * Cell.Words + Cell.Name, low);
      Atomics.store(words, cell * Cell.Words + Cell.Name + 1, high);
      return cell;
    } finally {
      Atomics.store(words, Head.Lock, 0);
      Atomics.notify(words, Head.Lock);
    }
  }

  /** Returns the index of the first cell of the set. */
  #firstOfSet(low: number): number {
    // The last bit of the word is always 1.
    return 1 + ((low >>> 1) % this.#sets) * this.#setCells;
  }

  /** Returns an unused cell, whose time is 0, or else that of the bucket that is full first. */
  #fullest(first: number, end: number): number {
    let fullest = first;
    let fullAtMs = Infinity;
    for (let cell = first; cell < end; cell++) {
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
  /** The last known cell; 0: none yet. */
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

  /**
   * If another thread has taken a token since a long turn began, the turn's time understates the refill: retries with the current
   * time.
   */
  take(nowMs: number, count = 1): boolean {
    return this.#take(nowMs, count) || this.#take(this.#buckets.readClock(), count);
  }

  #take(nowMs: number, count: number): boolean {
    for (;;) {
      const state = this.#state(nowMs);
      const fullAtMs = this.#rate.take(this.#buckets.timeOf(state), nowMs, count);
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

/** Returns the index of a cell's state among 64-bit words. */
function longAt(cell: number): number {
  return (cell * Cell.Words + Cell.FullAt) / 2;
}
