// A worker thread of the tests: it counts as traffic would until it is told to stop, and says how often.

import { parentPort, workerData } from 'node:worker_threads';
import { defineLayout } from '../../src/stats/layout.js';
import { type ScopeRef, ThreadStats, type WorkerStatsAttachment } from '../../src/stats/thread-stats.js';

export interface CountingTask {
  readonly attachment: WorkerStatsAttachment;
  readonly ref: ScopeRef;
  /** [0]: 1 asks the thread to stop; [1]: rounds that were begun; [2]: rounds that are complete. */
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
