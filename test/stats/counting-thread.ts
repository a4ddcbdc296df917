// A worker thread for tests: counts as traffic would until it is stopped, and reports how often.

import { parentPort, workerData } from 'node:worker_threads';
import { defineLayout } from '../../src/stats/layout.js';
import { type ScopeRef, ThreadStats, type WorkerStatsAttachment } from '../../src/stats/thread-stats.js';

export interface CountingTask {
  readonly attachment: WorkerStatsAttachment;
  readonly ref: ScopeRef;
  /** [0]: 1 stops the thread; [1]: rounds begun; [2]: rounds completed. */
  readonly control: SharedArrayBuffer;
}

export const Counted = defineLayout({ total: 'counter', active: 'gauge', time_ms: 'histogram' });

if (parentPort !== null) count(workerData as CountingTask);

function count({ attachment, ref, control }: CountingTask): void {
  const words = new Int32Array(control);
  const stats = new ThreadStats(attachment);
  const scope = stats.scope(ref);
  const ok = stats.dynamicCounter(ref.prefix, 'rq_200');
  const time = stats.dynamicHistogram(ref.prefix, 'rq_time');
  scope.increment(Counted.at.active);
  for (let round = words[2]! + 1; Atomics.load(words, 0) === 0; round++) {
    Atomics.store(words, 1, round);
    scope.increment(Counted.at.total);
    ok.increment();
    scope.record(Counted.at.time_ms, round % 1000);
    time.record(round % 90);
    Atomics.store(words, 2, round);
  }
}
