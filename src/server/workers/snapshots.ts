// Numbers the snapshots for the workers, and records which version each worker runs. What a snapshot retires is freed only when
// all workers run that snapshot and nothing that began with an older one is left.

import { forEachGuarded, internalError } from '../../log/internal-errors.js';
import type { StatsStore } from '../../stats/store.js';
import type { SharedWordsOwner } from '../../upstream/shared-words.js';
import type { FromWorker, Snapshot } from '../../worker/messages/messages.js';

/** The parts of a snapshot that its creator sets; missing parts are empty. */
export type SnapshotParts = Partial<Omit<Snapshot, 'version' | 'isComplete' | 'chunks'>>;

/** Sends a snapshot with these parts to the workers. */
export type Publish = (parts: SnapshotParts) => void;

/** Limits of one turn, a few milliseconds of work: items freed, and items examined. */
const FREED_PER_TURN = 500;
const CHECKED_PER_TURN = 5000;

const CALLBACK_FAILED = 'internal error: a callback for a snapshot failed';

export type SnapshotFailure = Omit<Extract<FromWorker, { kind: 'failed' }>, 'kind'>;

/** Something that later snapshots no longer contain, but that workers may still write to. */
export interface Retired {
  /** It is in use again and must not be freed. */
  readonly isRevived: boolean;
  /** Returns whether no connection or request that began with it is left. */
  isIdle(): boolean;
  /** Frees it. All workers run `version`, from which on its shared words may be reused. */
  free(version: number): void;
}

export class Snapshots {
  readonly #store: StatsStore;
  readonly #words: SharedWordsOwner;
  /** The version that each worker runs, by index. */
  readonly #applied: number[];
  #version = 0;
  /** Version of the stats memory that the workers have. */
  #chunksVersion = 0;
  /** In order of version. */
  #retired: RetiredItem[] = [];
  /** An unfinished scan of #retired, which continues in later turns: its position, and whether another scan follows. */
  #scan: { at: number; readonly kept: RetiredItem[]; isFollowed: boolean } | undefined;
  #waiting: Waiting[] = [];
  /** The last failure. */
  #failure = { version: 0, message: '' };

  constructor(store: StatsStore, words: SharedWordsOwner, workers: number) {
    this.#store = store;
    this.#words = words;
    this.#applied = new Array<number>(workers).fill(0);
  }

  /** The stats have memory that the workers do not have yet. */
  get hasNewChunks(): boolean {
    return this.#store.version !== this.#chunksVersion;
  }

  /** Returns the snapshot with the next number for all workers: the changes, and new stats memory. */
  next(parts: SnapshotParts): Snapshot {
    const chunks = this.#store.chunksSince(this.#chunksVersion);
    this.#chunksVersion = this.#store.version;
    return { version: ++this.#version, isComplete: false, chunks, ...withAllParts(parts) };
  }

  /** Returns the complete current version for a starting worker, which has all stats memory attached. */
  complete(parts: SnapshotParts): Snapshot {
    const chunks = this.#store.chunksSince(this.#store.version);
    return { version: this.#version, isComplete: true, chunks, ...withAllParts(parts) };
  }

  /** Frees `what` when no worker can write to it any more. No snapshot from the next one on may contain it. */
  retire(what: Retired): void {
    this.#retired.push({ what, version: this.#version + 1, idleVersion: 0 });
  }

  /** Something retired waits for the next version, whatever that contains. */
  get needsVersion(): boolean {
    return this.#retired.some(({ idleVersion }) => idleVersion > this.#version);
  }

  /** Calls `callback` once, when all workers run the latest version. */
  whenApplied(callback: () => void): void {
    this.#waiting.push({ after: 0, version: this.#version, callback, failed: undefined });
    this.reclaim();
  }

  /** The number of the latest snapshot. */
  get version(): number {
    return this.#version;
  }

  /**
   * Resolves when all workers run the latest version. Rejects when a worker cannot use it, or any other version after `after`.
   */
  outcome(after = this.#version - 1): Promise<void> {
    const { message, version } = this.#failure;
    if (version > after) return Promise.reject(new Error(message));
    return new Promise((callback, reject) => {
      const failed = (message: string) => reject(new Error(message));
      this.#waiting.push({ after, version: this.#version, callback, failed });
      this.reclaim();
    });
  }

  /**
   * Called when a worker can use only parts of `version`. `isComplete`: it started with that version, which includes all earlier
   * ones.
   */
  failed({ isComplete, message, version }: SnapshotFailure): void {
    this.#failure = { version, message };
    const affected = this.#waiting.filter(
      (each) => each.failed !== undefined && version > each.after && (isComplete || version <= each.version),
    );
    this.#waiting = this.#waiting.filter((each) => !affected.includes(each));
    forEachGuarded(affected, CALLBACK_FAILED, ({ failed }) => failed!(message));
  }

  /** Called when a worker runs `version`. Returns whether all workers run the latest one. */
  applied(worker: number, version: number): boolean {
    this.#applied[worker] = version;
    this.reclaim();
    return this.#oldest === this.#version;
  }

  /** Frees what is no longer used: some of it now, the rest in later turns. */
  reclaim(): void {
    const oldest = this.#oldest;
    if (this.#scan === undefined) this.#continueScan();
    else this.#scan.isFollowed = true;
    this.#words.reclaim(oldest);
    const reached = this.#waiting.filter(({ version }) => version <= oldest);
    this.#waiting = this.#waiting.filter(({ version }) => version > oldest);
    forEachGuarded(reached, CALLBACK_FAILED, ({ callback }) => callback());
  }

  get #oldest(): number {
    return Math.min(...this.#applied);
  }

  /** Starts or continues a scan of the retired items. */
  #continueScan(): void {
    const scan = this.#scan ?? { at: 0, kept: [], isFollowed: false };
    const oldest = this.#oldest;
    let freed = 0;
    for (let checked = 0; scan.at < this.#retired.length; checked++) {
      if (freed === FREED_PER_TURN || checked === CHECKED_PER_TURN) {
        this.#scan = scan;
        setImmediate(() => this.#continueScan());
        return;
      }
      const item = this.#retired[scan.at++]!;
      if (this.#isHeld(item, oldest)) scan.kept.push(item);
      else freed++;
    }
    this.#retired = scan.kept;
    this.#scan = undefined;
    if (scan.isFollowed) this.reclaim();
  }

  #isHeld(item: RetiredItem, oldest: number): boolean {
    const { what, version } = item;
    if (what.isRevived) return false;
    if (version > oldest) return true;
    if (!what.isIdle()) {
      item.idleVersion = 0;
      return true;
    }
    // The worker that ended the last request may still be in that turn and count the end of the request.
    if (item.idleVersion === 0) item.idleVersion = this.#version + 1;
    if (item.idleVersion > oldest) return true;
    try {
      what.free(version);
    } catch (error) {
      // The item is leaked: a retry would fail every time that something else is freed.
      internalError('internal error: a retired item could not be freed', error);
    }
    return false;
  }
}

function withAllParts(parts: SnapshotParts): Required<SnapshotParts> {
  return {
    statScopes: parts.statScopes ?? {},
    clusters: parts.clusters ?? [],
    packedClusters: parts.packedClusters ?? [],
    removedClusters: parts.removedClusters ?? [],
    filterConfigs: parts.filterConfigs ?? [],
    removedFilterConfigs: parts.removedFilterConfigs ?? [],
    routes: parts.routes ?? [],
    removedRoutes: parts.removedRoutes ?? [],
    routeScopes: parts.routeScopes ?? [],
    removedRouteScopes: parts.removedRouteScopes ?? [],
    listeners: parts.listeners ?? [],
    inlineRoutes: parts.inlineRoutes ?? [],
    removedListeners: parts.removedListeners ?? [],
    removedStatScopes: parts.removedStatScopes ?? [],
  };
}

interface Waiting {
  /** Failures of this version and of older ones are ignored. */
  readonly after: number;
  readonly version: number;
  readonly callback: () => void;
  readonly failed: ((message: string) => void) | undefined;
}

interface RetiredItem {
  readonly what: Retired;
  readonly version: number;
  /** The first version after the item was found idle; 0 when it was not idle at the last check. */
  idleVersion: number;
}
