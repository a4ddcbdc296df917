// Numbers the snapshots that workers are sent, and keeps track of which one each worker runs. What a snapshot frees is reused only
// when all workers run it, and nothing that began with an older one is under way.

import { forEachGuarded, internalError } from '../../log/internal-errors.js';
import type { StatsStore } from '../../stats/store.js';
import type { SharedWordsOwner } from '../../upstream/shared-words.js';
import type { FromWorker, Snapshot } from '../../worker/messages/messages.js';

/** The parts of a snapshot that its maker chooses; the rest is empty. */
export type SnapshotParts = Partial<Omit<Snapshot, 'version' | 'isComplete' | 'chunks'>>;

/** Sends a snapshot with these parts to the workers. */
export type Publish = (parts: SnapshotParts) => void;

/** How many items are given back, or looked at in vain, in one turn: a few milliseconds' work. */
const FREED_PER_TURN = 500;
const LOOKS_PER_TURN = 5000;

const NOT_TOLD = 'internal error: what waited for the workers cannot go on';

export type SnapshotFailure = Omit<Extract<FromWorker, { kind: 'failed' }>, 'kind'>;

/** Something that no later snapshot contains, but that workers may still write to. */
export interface Retired {
  /** It is used again, and is not given back. */
  readonly isRevived: boolean;
  /** No connection or request that began with it is left. */
  isIdle(): boolean;
  /** Gives it back. All workers run `version`, from which on its shared words may be reused. */
  free(version: number): void;
}

export class Snapshots {
  readonly #store: StatsStore;
  readonly #words: SharedWordsOwner;
  /** The version that each worker runs, by index. */
  readonly #applied: number[];
  #version = 0;
  /** Version of the stats' memory that the workers know. */
  #chunksVersion = 0;
  /** In the order of their versions. */
  #retired: RetiredItem[] = [];
  /** A look through #retired goes on in later turns: how far it has come, and whether another one is to follow. */
  #look: { at: number; readonly kept: RetiredItem[]; isFollowed: boolean } | undefined;
  #waiting: Waiting[] = [];
  /** The last one. */
  #failure = { version: 0, message: '' };

  constructor(store: StatsStore, words: SharedWordsOwner, workers: number) {
    this.#store = store;
    this.#words = words;
    this.#applied = new Array<number>(workers).fill(0);
  }

  /** Whether the stats have memory that the workers do not know yet. */
  get hasNewChunks(): boolean {
    return this.#store.version !== this.#chunksVersion;
  }

  /** A snapshot with the next number, for all workers: what has changed, and stats memory that they do not know yet. */
  next(parts: SnapshotParts): Snapshot {
    const chunks = this.#store.chunksSince(this.#chunksVersion);
    this.#chunksVersion = this.#store.version;
    return { version: ++this.#version, isComplete: false, chunks, ...withAllParts(parts) };
  }

  /** All of the current version, for a worker that starts with all stats memory attached. */
  complete(parts: SnapshotParts): Snapshot {
    const chunks = this.#store.chunksSince(this.#store.version);
    return { version: this.#version, isComplete: true, chunks, ...withAllParts(parts) };
  }

  /** No snapshot from the next one on contains it. It is given back when no worker can write to it any more. */
  retire(what: Retired): void {
    this.#retired.push({ what, version: this.#version + 1, idleVersion: 0 });
  }

  /** Whether something retired waits for the next version, whatever that contains. */
  get needsVersion(): boolean {
    return this.#retired.some(({ idleVersion }) => idleVersion > this.#version);
  }

  /** Calls back, once, when all workers run the latest version. */
  whenApplied(callback: () => void): void {
    this.#waiting.push({ after: 0, version: this.#version, callback, failed: undefined });
    this.reclaim();
  }

  /** The number of the latest one. */
  get version(): number {
    return this.#version;
  }

  /** Resolves when all workers run the latest version. Rejects when one of them cannot use that, or any other after `after`. */
  outcome(after = this.#version - 1): Promise<void> {
    const { message, version } = this.#failure;
    if (version > after) return Promise.reject(new Error(message));
    return new Promise((callback, reject) => {
      const failed = (message: string) => reject(new Error(message));
      this.#waiting.push({ after, version: this.#version, callback, failed });
      this.reclaim();
    });
  }

  /** A worker can use only parts of `version`. `isComplete`: it started with that, which has all versions before it. */
  failed({ isComplete, message, version }: SnapshotFailure): void {
    this.#failure = { version, message };
    const meant = this.#waiting.filter(
      (each) => each.failed !== undefined && version > each.after && (isComplete || version <= each.version),
    );
    this.#waiting = this.#waiting.filter((each) => !meant.includes(each));
    forEachGuarded(meant, NOT_TOLD, ({ failed }) => failed!(message));
  }

  /** A worker runs `version`. Returns whether all workers run the latest one. */
  applied(worker: number, version: number): boolean {
    this.#applied[worker] = version;
    this.reclaim();
    return this.#oldest === this.#version;
  }

  /** Gives back what nobody uses any more: some of it now, the rest in turns. */
  reclaim(): void {
    const oldest = this.#oldest;
    if (this.#look === undefined) this.#lookThrough();
    else this.#look.isFollowed = true;
    this.#words.reclaim(oldest);
    const reached = this.#waiting.filter(({ version }) => version <= oldest);
    this.#waiting = this.#waiting.filter(({ version }) => version > oldest);
    forEachGuarded(reached, NOT_TOLD, ({ callback }) => callback());
  }

  get #oldest(): number {
    return Math.min(...this.#applied);
  }

  /** Looks at what is retired, or goes on to. */
  #lookThrough(): void {
    const look = this.#look ?? { at: 0, kept: [], isFollowed: false };
    const oldest = this.#oldest;
    let freed = 0;
    for (let looks = 0; look.at < this.#retired.length; looks++) {
      if (freed === FREED_PER_TURN || looks === LOOKS_PER_TURN) {
        this.#look = look;
        setImmediate(() => this.#lookThrough());
        return;
      }
      const item = this.#retired[look.at++]!;
      if (this.#isHeld(item, oldest)) look.kept.push(item);
      else freed++;
    }
    this.#retired = look.kept;
    this.#look = undefined;
    if (look.isFollowed) this.reclaim();
  }

  #isHeld(item: RetiredItem, oldest: number): boolean {
    const { what, version } = item;
    if (what.isRevived) return false;
    if (version > oldest) return true;
    if (!what.isIdle()) {
      item.idleVersion = 0;
      return true;
    }
    // The worker that ended the last request may still be in that turn, and count the end of the request.
    if (item.idleVersion === 0) item.idleVersion = this.#version + 1;
    if (item.idleVersion > oldest) return true;
    try {
      what.free(version);
    } catch (error) {
      // It is lost: another try would fail each time that something else is to be freed.
      internalError('internal error: what was retired cannot be freed', error);
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
  /** Failures of this version and older ones do not matter. */
  readonly after: number;
  readonly version: number;
  readonly callback: () => void;
  readonly failed: ((message: string) => void) | undefined;
}

interface RetiredItem {
  readonly what: Retired;
  readonly version: number;
  /** The first version after it was found idle; 0: it was not idle when last looked at. */
  idleVersion: number;
}
