// The way of a change to the workers: as a snapshot with the next number, and back comes when all of them run it.

import { nextTurn } from '../../common/next-turn.js';
import { atMostMs, withinMs } from '../../common/within-ms.js';
import type { SnapshotParts, Snapshots } from './snapshots.js';
import type { WorkerSet } from './worker-set.js';

/** How long it is waited for workers to do what they have been told: they do between two turns. */
const APPLY_WAIT_MS = 2000;
/** How long workers may take for a change of the configuration before it is taken back. */
const SETTLE_MS = 20_000;

export class Publication {
  readonly #snapshots: Snapshots;
  readonly #workers: Pick<WorkerSet, 'broadcast' | 'isStarted'>;

  constructor(snapshots: Snapshots, workers: Pick<WorkerSet, 'broadcast' | 'isStarted'>) {
    this.#snapshots = snapshots;
    this.#workers = workers;
  }

  /** A new version for the workers, once there are any: those that begin get everything. */
  publish(parts: SnapshotParts): void {
    if (this.#workers.isStarted)
      this.#workers.broadcast({ kind: 'snapshot', snapshot: this.#snapshots.make(parts, false) });
  }

  /** Calls back when the workers have handled what they have been told; resolves then, or when one is too busy for it. */
  async whenHandled(callback: () => void): Promise<void> {
    this.publish({});
    const applied = new Promise<void>((resolve) =>
      this.#snapshots.whenApplied(() => {
        callback();
        resolve();
      }),
    );
    await atMostMs(applied, APPLY_WAIT_MS);
  }

  /**
   * For a change that is made in steps: each call resolves when all workers run what was published since the one before, or
   * rejects when one of them cannot use it, or takes too long.
   */
  steps(): () => Promise<void> {
    let settled = this.#snapshots.version;
    return async () => {
      const since = settled;
      // Changes of this turn are published together at its end.
      await nextTurn();
      this.publish({});
      settled = this.#snapshots.version;
      await withinMs(this.#snapshots.outcome(since), SETTLE_MS, 'a worker has not taken the change in time');
    };
  }

  /** Memory that nobody uses any more is given back, and memory that was added reaches the workers. */
  tidy(): void {
    this.#snapshots.reclaim();
    if (this.#snapshots.hasNewChunks || this.#snapshots.needsVersion) this.publish({});
  }
}
