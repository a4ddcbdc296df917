// Versions of what workers run: each change is a snapshot with a number, and what it frees is used again when every live
// worker has said that it runs it, and has ended what it had begun before.

import { HostStats } from '../../stats/layouts/cluster.js';
import type { StatsStore } from '../../stats/store.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import type { SharedWordsOwner } from '../../upstream/shared-words.js';
import type { Snapshot } from '../../worker/messages.js';

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
  #retiredHosts: RetiredHost[] = [];
  #waiting: { readonly version: number; readonly callback: () => void }[] = [];

  constructor(store: StatsStore, words: SharedWordsOwner, workers: number) {
    this.#store = store;
    this.#words = words;
    this.#applied = new Array<number>(workers).fill(0);
  }

  /** Whether the stats have memory that no snapshot has brought to the workers yet. */
  get hasNewChunks(): boolean {
    return this.#store.version !== this.#chunksVersion;
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
      routes: parts.routes ?? [],
      removedRoutes: parts.removedRoutes ?? [],
      routeScopes: parts.routeScopes ?? [],
      removedRouteScopes: parts.removedRouteScopes ?? [],
      listeners: parts.listeners ?? [],
      removedListeners: parts.removedListeners ?? [],
      removedChains: parts.removedChains ?? [],
      removedScopes: parts.removedScopes ?? [],
    };
  }

  /**
   * A host is in no snapshot from the next one on: its words and stats are given back when no worker can write there. Its
   * last requests may take long: they count in it until they end.
   */
  retireHost(block: number, scope: ScopeRef): void {
    this.#retiredHosts.push({ block, scope, version: this.#version + 1 });
  }

  /** Calls back, once, when all workers run the latest version, and have ended what they did for older ones. */
  whenApplied(callback: () => void): void {
    this.#waiting.push({ version: this.#version, callback });
    this.reclaim();
  }

  /** A worker runs `version`. Returns whether all workers run the latest one. */
  applied(worker: number, version: number): boolean {
    this.#applied[worker] = version;
    this.reclaim();
    return this.#oldest === this.#version;
  }

  /** Gives back what nobody uses any more. */
  reclaim(): void {
    const oldest = this.#oldest;
    this.#retiredHosts = this.#retiredHosts.filter(({ block, scope, version }) => {
      if (version > oldest || this.#isBusy(scope)) return true;
      this.#store.removeScope(scope);
      this.#words.retireHost(block, version);
      return false;
    });
    this.#words.reclaim(oldest);
    const reached = this.#waiting.filter(({ version }) => version <= oldest);
    this.#waiting = this.#waiting.filter(({ version }) => version > oldest);
    for (const { callback } of reached) callback();
  }

  get #oldest(): number {
    return Math.min(...this.#applied);
  }

  #isBusy(host: ScopeRef): boolean {
    const { at } = HostStats;
    return this.#store.valueOf(host, at.cx_active) !== 0 || this.#store.valueOf(host, at.rq_active) !== 0;
  }
}

interface RetiredHost {
  readonly block: number;
  readonly scope: ScopeRef;
  readonly version: number;
}
