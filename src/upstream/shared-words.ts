// Counts that threads share about clusters, hosts and listeners: Int32 words in shared memory, with a record of each thread's
// part.
//
// The primary assigns each cluster and each host a block of words; snapshots carry its index. Workers add and subtract with
// Atomics, and record their net additions in their own share at the same index. So the primary can subtract a dead worker's part;
// otherwise a breaker would stay open forever. Untouched memory costs nothing.

import { Contention } from '../common/process/contention.js';

/** Words of a cluster's block. The block is a cache line, which avoids false sharing between clusters. */
export const enum ClusterWord {
  /** Eight counters: LimitKind for the default priority, then for the high one. */
  Limits = 0,
  /** Requests that wait for the host that they name. */
  Waiting = 8,
  /** Connection pools in use, for the default priority and for the high one. */
  Pools = 9,
  /** A total of requests that the load assignment demands to drop. No share records it, and it may overflow. */
  DroppedByPolicy = 11,
}

/** Words of a host's block. */
export const enum HostWord {
  ActiveRequests = 0,
  // Outlier detection. No share records these: observations of a host remain valid when the thread dies. Consecutive failures,
  // which are reset to 0:
  Consecutive5xx = 1,
  ConsecutiveGatewayFailures = 2,
  ConsecutiveLocalOriginFailures = 3,
  // Totals, which the primary compares with those of the previous interval. They may overflow:
  Requests = 4,
  Successes = 5,
  LocalOriginRequests = 6,
  LocalOriginSuccesses = 7,
  /** Connections, in clusters that limit those of a host. */
  Connections = 8,
}

/** Words of a listener's block. One more block holds the totals of all listeners. */
export const enum ListenerWord {
  Connections = 0,
}

export const CLUSTER_WORDS = 16;
export const HOST_WORDS = 16;
export const LISTENER_WORDS = 16;

/** The primary's number among the counting threads. Workers are numbered from 1. */
export const PRIMARY = 0;

/** The buffers that a thread needs to count. They can cross postMessage() and workerData. */
export interface SharedWordsHandle {
  readonly words: SharedArrayBuffer;
  /** This thread's net additions. No other thread writes it while this one lives. */
  readonly share: SharedArrayBuffer;
  /** Where this thread counts lost races for a word; absent: it does not count them. */
  readonly contention?: SharedArrayBuffer;
}

/**
 * One thread's access. The methods take a few instructions because every request calls them. They change the word first and the
 * share right after it: V8 may terminate a thread where a call begins, but not between these two. In the opposite order one of
 * ten terminated workers left a word wrong forever.
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
    // An estimate that the exchange verifies: a plain read costs a tenth of Atomics.load().
    let sum = this.words[index]!;
    if (sum >= limit) sum = Atomics.load(this.words, index);
    while (sum < limit) {
      const seen = Atomics.compareExchange(this.words, index, sum, sum + 1);
      if (seen === sum) {
        this.#share[index]!++;
        return true;
      }
      if (this.#contention !== undefined) return this.#retryAcquire(this.#contention, index, limit);
      sum = seen;
    }
    return false;
  }

  /** Continues tryAcquire() after another thread has changed the word, and records the time spent. */
  #retryAcquire(contention: Contention, index: number, limit: number): boolean {
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

  /** Adds `count`. If negative, it subtracts what this thread has added before. */
  add(index: number, count: number): void {
    Atomics.add(this.words, index, count);
    this.#share[index]! += count;
  }

  /** Subtracts 1 that this thread has added. */
  release(index: number): void {
    Atomics.sub(this.words, index, 1);
    this.#share[index]!--;
  }

  /** Returns the sum of all threads. */
  read(index: number): number {
    return Atomics.load(this.words, index);
  }
}

/** The primary's side: allocates blocks, and subtracts the counts of dead workers. */
export class SharedWordsOwner {
  readonly #buffer: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #shares = new Map<number, SharedArrayBuffer>();
  /** Words below this index have been allocated at some time. */
  #used = 0;
  readonly #free = new Map<number, number[]>();
  #retired: RetiredBlock[] = [];

  /** `capacityBytes` is address space, not memory. The default has room for 500,000 hosts. */
  constructor(capacityBytes = 32 * 1024 * 1024) {
    this.#buffer = new SharedArrayBuffer(capacityBytes);
    this.#words = new Int32Array(this.#buffer);
  }

  /** Returns the buffers for thread `thread`. Before a number is reused, forgetWorker() must be called. */
  handle(thread: number): SharedWordsHandle {
    let share = this.#shares.get(thread);
    if (share === undefined) {
      share = new SharedArrayBuffer(this.#buffer.byteLength);
      this.#shares.set(thread, share);
    }
    return { words: this.#buffer, share };
  }

  /** Returns the index of CLUSTER_WORDS words, all 0. Throws a RangeError when there is no room left. */
  allocateCluster(): number {
    return this.#allocate(CLUSTER_WORDS);
  }

  /** Returns the index of HOST_WORDS words, all 0. Throws a RangeError when there is no room left. */
  allocateHost(): number {
    return this.#allocate(HOST_WORDS);
  }

  /** Returns the index of LISTENER_WORDS words, all 0. Throws a RangeError when there is no room left. */
  allocateListener(): number {
    return this.#allocate(LISTENER_WORDS);
  }

  /** Retires a block that snapshots from `version` on do not contain. Workers with an older snapshot may still count in it. */
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

  /** Called when all workers have snapshot `oldestVersion` or later. Frees blocks that were retired by then. */
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

  /** Subtracts a thread's counts. The thread must have ended, because nothing may write its share any more. */
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

  /** Sets a word that no share records to 0. */
  clear(index: number): void {
    Atomics.store(this.#words, index, 0);
  }

  #allocate(size: number): number {
    const free = this.#free.get(size)?.pop();
    if (free !== undefined) return free;
    // Blocks are aligned to their size, so that none spans two cache lines.
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
