// What the threads count together about clusters, hosts and listeners: Int32 words in shared memory, and who has added what.
//
// The primary gives each cluster and each host a block of words; its index goes into snapshots. Workers add and subtract
// with Atomics and note what they have added in a share of their own, at the same index, so that the primary can take a
// dead worker's part back: a breaker would stay tripped for ever otherwise. Memory costs nothing until it is touched.

import { Contention } from '../common/process/contention.js';

/** Words of a cluster's block; a cache line, so that clusters do not slow each other down. */
export const enum ClusterWord {
  /** Eight counters: those of LimitKind for the default priority, then those for the high one. */
  Limits = 0,
}

/** Words of a host's block. */
export const enum HostWord {
  ActiveRequests = 0,
  // Those of outlier detection. They are in nobody's share: what a thread has seen of a host stays true when it dies. Failures in
  // a row, which go back to 0:
  Consecutive5xx = 1,
  ConsecutiveGatewayFailures = 2,
  ConsecutiveLocalOriginFailures = 3,
  // Sums, which the primary compares with those of the interval before; they may overflow:
  Requests = 4,
  Successes = 5,
  LocalOriginRequests = 6,
  LocalOriginSuccesses = 7,
}

/** Words of a listener's block; one more block holds the same for all listeners together. */
export const enum ListenerWord {
  Connections = 0,
}

export const CLUSTER_WORDS = 16;
export const HOST_WORDS = 8;
export const LISTENER_WORDS = 16;

/** The number of the primary among the threads that count; workers have those from 1. */
export const PRIMARY = 0;

/** The buffers a thread needs to count. They cross postMessage() and workerData as they are. */
export interface SharedWordsHandle {
  readonly words: SharedArrayBuffer;
  /** What this thread has added; nobody else writes it while the thread lives. */
  readonly share: SharedArrayBuffer;
  /** Where this thread counts how often another one was faster; it does not without it. */
  readonly contention?: SharedArrayBuffer;
}

/**
 * One thread's access. Methods are a few instructions: they stand on the path of every request. They change the word
 * first and the share right after it, for V8 ends a thread where a call begins but not there: with the opposite order one
 * of ten terminated workers left a word wrong for ever.
 */
export class SharedWords {
  readonly words: Int32Array;
  readonly #share: Int32Array;
  readonly #contention: Contention | undefined;

  constructor(handle: SharedWordsHandle) {
    this.#contention = handle.contention && new Contention(handle.contention);
    this.words = new Int32Array(handle.words);
    this.#share = new Int32Array(handle.share);
  }

  /** Adds 1 if the sum of all threads is below `limit`. */
  tryAcquire(index: number, limit: number): boolean {
    // A guess, which the exchange proves: a plain read costs a tenth of Atomics.load().
    let sum = this.words[index]!;
    if (sum >= limit) sum = Atomics.load(this.words, index);
    while (sum < limit) {
      const seen = Atomics.compareExchange(this.words, index, sum, sum + 1);
      if (seen === sum) {
        this.#share[index]!++;
        return true;
      }
      if (this.#contention !== undefined) return this.#tryAgain(this.#contention, index, limit);
      sum = seen;
    }
    return false;
  }

  /** Another thread has changed the word in between: as tryAcquire(), with the time that this takes. */
  #tryAgain(contention: Contention, index: number, limit: number): boolean {
    const startMs = performance.now();
    let isAcquired = false;
    for (let sum = Atomics.load(this.words, index); sum < limit; ) {
      const seen = Atomics.compareExchange(this.words, index, sum, sum + 1);
      if (seen === sum) {
        this.#share[index]!++;
        isAcquired = true;
        break;
      }
      sum = seen;
    }
    contention.record(performance.now() - startMs);
    return isAcquired;
  }

  /** Adds 1. */
  acquire(index: number): void {
    Atomics.add(this.words, index, 1);
    this.#share[index]!++;
  }

  /** Adds `count`, or takes back so many that this thread has added when it is negative. */
  add(index: number, count: number): void {
    Atomics.add(this.words, index, count);
    this.#share[index]! += count;
  }

  /** Subtracts 1 that this thread has added. */
  release(index: number): void {
    Atomics.sub(this.words, index, 1);
    this.#share[index]!--;
  }

  /** The sum of all threads. */
  read(index: number): number {
    return Atomics.load(this.words, index);
  }
}

/** The primary's side: gives out blocks, takes back what dead workers held. */
export class SharedWordsOwner {
  readonly #buffer: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #shares = new Map<number, SharedArrayBuffer>();
  /** Words below this have been given out at some time. */
  #used = 0;
  readonly #free = new Map<number, number[]>();
  #retired: RetiredBlock[] = [];

  /** `capacityBytes` is address space, not memory: the default has room for 500,000 hosts. */
  constructor(capacityBytes = 16 * 1024 * 1024) {
    this.#buffer = new SharedArrayBuffer(capacityBytes);
    this.#words = new Int32Array(this.#buffer);
  }

  /** What thread `thread` needs. A number that has been used before needs forgetWorker() first. */
  handle(thread: number): SharedWordsHandle {
    let share = this.#shares.get(thread);
    if (share === undefined) {
      share = new SharedArrayBuffer(this.#buffer.byteLength);
      this.#shares.set(thread, share);
    }
    return { words: this.#buffer, share };
  }

  /** Index of the first of CLUSTER_WORDS words, all 0. Throws a RangeError when there is no room left. */
  allocateCluster(): number {
    return this.#allocate(CLUSTER_WORDS);
  }

  /** Index of the first of HOST_WORDS words, all 0. Throws a RangeError when there is no room left. */
  allocateHost(): number {
    return this.#allocate(HOST_WORDS);
  }

  /** Index of the first of LISTENER_WORDS words, all 0. Throws a RangeError when there is no room left. */
  allocateListener(): number {
    return this.#allocate(LISTENER_WORDS);
  }

  /** The block is not in snapshots of `version` and later; workers with an older one may still count in it. */
  retireCluster(block: number, version: number): void {
    this.#retired.push({ block, size: CLUSTER_WORDS, version });
  }

  /** See retireCluster(). */
  retireHost(block: number, version: number): void {
    this.#retired.push({ block, size: HOST_WORDS, version });
  }

  /** See retireCluster(). */
  retireListener(block: number, version: number): void {
    this.#retired.push({ block, size: LISTENER_WORDS, version });
  }

  /** All workers hold nothing older than `oldestVersion`: blocks that were retired by then may be given out again. */
  reclaim(oldestVersion: number): void {
    this.#retired = this.#retired.filter(({ block, size, version }) => {
      if (version > oldestVersion) return true;
      for (let at = block; at < block + size; at++) {
        Atomics.store(this.#words, at, 0);
        for (const share of this.#shares.values()) new Int32Array(share)[at] = 0;
      }
      const free = this.#free.get(size);
      if (free === undefined) this.#free.set(size, [block]);
      else free.push(block);
      return false;
    });
  }

  /** Subtracts all that a thread has added. It must have ended: nothing may write its share any more. */
  forgetWorker(thread: number): void {
    const buffer = this.#shares.get(thread);
    if (buffer === undefined) return;
    const share = new Int32Array(buffer);
    for (let at = 0; at < this.#used; at++) {
      if (share[at] === 0) continue;
      Atomics.sub(this.#words, at, share[at]!);
      share[at] = 0;
    }
  }

  read(index: number): number {
    return Atomics.load(this.#words, index);
  }

  /** Of a word that is in nobody's share. */
  clear(index: number): void {
    Atomics.store(this.#words, index, 0);
  }

  #allocate(size: number): number {
    const free = this.#free.get(size)?.pop();
    if (free !== undefined) return free;
    // Blocks are aligned to their size, so that none lies across two cache lines.
    const block = Math.ceil(this.#used / size) * size;
    if (block + size > this.#words.length)
      throw new RangeError(`no room for more clusters and hosts: all ${this.#words.length} shared words are in use`);
    this.#used = block + size;
    return block;
  }
}

interface RetiredBlock {
  readonly block: number;
  readonly size: number;
  readonly version: number;
}
