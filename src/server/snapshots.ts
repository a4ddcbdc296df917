// Versions of what workers run: each change is a snapshot with a number, and what it frees is used again when every live
// worker has said that it runs it.

import type { StatsStore } from '../stats/store.js';
import type { ScopeRef } from '../stats/thread-stats.js';
import type { SharedWordsOwner } from '../upstream/shared-words.js';
import type { Snapshot } from '../worker/messages.js';

/** The parts of a snapshot that its maker chooses; the rest is empty. */
export type SnapshotParts = Partial<Omit<Snapshot, 'version' | 'chunks'>>;

export class Snapshots {
  readonly #store: StatsStore;
  readonly #words: SharedWordsOwner;
  /** The version that each worker runs, by index. */
  readonly #applied: number[];
  #version = 0;
  /** How much of the stats' memory earlier snapshots have brought. */
  #chunksVersion = 0;
  #retiredScopes: { readonly scope: ScopeRef; readonly version: number }[] = [];

  constructor(store: StatsStore, words: SharedWordsOwner, workers: number) {
    this.#store = store;
    this.#words = words;
    this.#applied = new Array<number>(workers).fill(0);
  }

  /** The number that the next snapshot will have. */
  get nextVersion(): number {
    return this.#version + 1;
  }

  /** A snapshot with the next number. `isComplete`: for a worker that begins, whose attachment has all memory. */
  make(parts: SnapshotParts, isComplete: boolean): Snapshot {
    const chunks = this.#store.chunksSince(isComplete ? this.#store.version : this.#chunksVersion);
    if (!isComplete) {
      this.#version++;
      this.#chunksVersion = this.#store.version;
    }
    return {
      version: this.#version,
      chunks,
      scopes: parts.scopes ?? {},
      clusters: parts.clusters ?? [],
      removedClusters: parts.removedClusters ?? [],
      listeners: parts.listeners ?? [],
      removedListeners: parts.removedListeners ?? [],
    };
  }

  /** The scope is in no snapshot from the next one on: its slots are given back when no worker can write there. */
  retireScope(scope: ScopeRef): void {
    this.#retiredScopes.push({ scope, version: this.nextVersion });
  }

  /** A worker runs `version`. Returns whether all workers run the latest one. */
  applied(worker: number, version: number): boolean {
    this.#applied[worker] = version;
    const oldest = Math.min(...this.#applied);
    this.#words.reclaim(oldest);
    this.#retiredScopes = this.#retiredScopes.filter(({ scope, version: since }) => {
      if (since > oldest) return true;
      this.#store.removeScope(scope);
      return false;
    });
    return oldest === this.#version;
  }
}
