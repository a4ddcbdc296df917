// Sends changes to the workers as numbered snapshots, and reports when all workers run one.

import { nextTurn } from '../../common/time/next-turn.js';
import { atMostMs, withinMs } from '../../common/time/within-ms.js';
import type { SnapshotParts, Snapshots } from './snapshots.js';
import type { WorkerSet } from './worker-set.js';

/** Limit for workers to handle their messages, which they do between two turns of their loops. */
const APPLY_WAIT_MS = 2000;
/** Limit for workers to apply a change; a later one is rolled back. */
const SETTLE_MS = 20_000;

export class Publication {
  readonly #snapshots: Snapshots;
  readonly #workers: Pick<WorkerSet, 'broadcast' | 'isStarted'>;

  constructor(snapshots: Snapshots, workers: Pick<WorkerSet, 'broadcast' | 'isStarted'>) {
    this.#snapshots = snapshots;
    this.#workers = workers;
  }

  /** Sends a new version. A no-op before the workers start: they start with the complete configuration. */
  publish(parts: SnapshotParts): void {
    if (this.#workers.isStarted) this.#workers.broadcast({ kind: 'snapshot', snapshot: this.#snapshots.next(parts) });
  }

  /**
   * Calls `callback` when the workers have handled all messages so far. Resolves then, or earlier when a worker takes too long.
   */
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
   * For a change in several steps. Each call of the returned function resolves when all workers run what was published since the
   * call before it, and rejects when a worker cannot use that or takes too long.
   */
  steps(): () => Promise<void> {
    let settled = this.#snapshots.version;
    return async () => {
      const since = settled;
      // Changes of this turn are published together at its end.
      await nextTurn();
      this.publish({});
      settled = this.#snapshots.version;
      await withinMs(this.#snapshots.outcome(since), SETTLE_MS, 'a worker has not applied the change in time');
    };
  }

  /** Reclaims unused memory, and publishes memory that was added to the stats. */
  reclaimMemory(): void {
    this.#snapshots.reclaim();
    if (this.#snapshots.hasNewChunks || this.#snapshots.needsVersion) this.publish({});
  }
}
