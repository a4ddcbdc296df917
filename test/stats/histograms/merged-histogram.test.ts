import fc from 'fast-check';
import t from 'tap';
import { binOf } from '../../../src/stats/histograms/bins.js';
import type { Distribution } from '../../../src/stats/histograms/distribution.js';
import { defineLayout, PERCENT_SCALE } from '../../../src/stats/layout.js';
import { StatsStore } from '../../../src/stats/store.js';
import { ThreadStats } from '../../../src/stats/thread-stats.js';

const Timed = defineLayout({ time_ms: 'histogram', share: 'histogram_percent' });

function entries(distribution: Distribution): [number, number][] {
  return distribution.bins.map((bin, i) => [bin, distribution.counts[i]!]);
}

function binned(samples: readonly number[]): [number, number][] {
  const counts = new Map<number, number>();
  for (const sample of samples) counts.set(binOf(sample), (counts.get(binOf(sample)) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => a - b);
}

t.test('the merged histogram is the sum of all threads, per interval and since start', async () => {
  const samples = fc.array(fc.oneof(fc.nat(120), fc.nat(1_000_000_000), fc.double({ min: 0, max: 20, noNaN: true })), {
    maxLength: 60,
  });
  const threads = 3;
  const interval = fc.array(samples, { minLength: threads, maxLength: threads });
  fc.assert(
    fc.property(fc.array(interval, { minLength: 1, maxLength: 5 }), (intervals) => {
      const store = new StatsStore({ workers: threads - 1 });
      const ref = store.addScope('a.', Timed);
      const scopes = [store.own, ...[0, 1].map((worker) => new ThreadStats(store.attachment(worker)))].map((stats) => ({
        known: stats.scope(ref),
        born: stats.dynamicHistogram('a.', 'born_ms'),
      }));
      const all: number[] = [];
      for (const parts of intervals) {
        parts.forEach((part, thread) => {
          for (const sample of part) {
            scopes[thread]!.known.record(Timed.at.time_ms, sample);
            scopes[thread]!.born.record(sample);
          }
        });
        all.push(...parts.flat());
        store.flush();
        for (const name of ['a.time_ms', 'a.born_ms']) {
          const value = store.histogram(name);
          if (
            all.length === 0
              ? value !== undefined
              : JSON.stringify(entries(value!.cumulative)) !== JSON.stringify(binned(all))
          )
            return false;
          if (value !== undefined && JSON.stringify(entries(value.interval)) !== JSON.stringify(binned(parts.flat())))
            return false;
        }
      }
      return true;
    }),
    { numRuns: 60 },
  );
});

t.test('an interval without samples is empty, and the total remains', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const ref = store.addScope('a.', Timed);
  const scope = new ThreadStats(store.attachment(0)).scope(ref);
  scope.record(Timed.at.time_ms, 115);
  store.flush();
  t.equal(store.histogram('a.time_ms')!.interval.count(), 1);
  store.flush();
  t.equal(store.histogram('a.time_ms')!.interval.count(), 0);
  t.equal(store.histogram('a.time_ms')!.cumulative.count(), 1);
  scope.record(Timed.at.time_ms, 115);
  store.flush();
  t.equal(store.histogram('a.time_ms')!.interval.count(), 1);
  t.equal(store.histogram('a.time_ms')!.cumulative.count(), 2);
});

t.test('a flush runs in steps', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const worker = new ThreadStats(store.attachment(0));
  for (let i = 0; i < 1000; i++) {
    const ref = store.addScope(`cluster.c${i}.`, Timed);
    worker.addChunks(store.chunksSince(0));
    worker.scope(ref).record(Timed.at.share, PERCENT_SCALE / 4);
    worker.dynamicHistogram(`cluster.c${i}.`, 'rq_time').record(i);
  }
  let steps = 0;
  for (const _ of store.flushInSteps()) steps++;
  t.ok(steps > 5, `${steps} steps`);
  for (const name of ['cluster.c0.rq_time', 'cluster.c999.rq_time', 'cluster.c999.share']) {
    t.equal(store.histogram(name)!.cumulative.count(), 1, name);
  }
});
