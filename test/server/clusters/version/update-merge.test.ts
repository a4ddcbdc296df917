// When changes of hosts are delivered: no clock, no cluster.

import t from 'tap';
import { TimingWheel } from '../../../../src/io/time/timing-wheel.js';
import { UpdateMerge } from '../../../../src/server/clusters/version/update-merge.js';
import { ClusterManagerStats } from '../../../../src/stats/layouts/cluster.js';
import { StatsStore } from '../../../../src/stats/store.js';

function merging(windowMs: number) {
  const store = new StatsStore({ workers: 1 });
  const timers = new TimingWheel({ nowMs: 0, onError: (error) => t.fail(String(error)) });
  let now = 0;
  const delivered: number[] = [];
  const merge = new UpdateMerge(windowMs, {
    timers,
    now: () => now,
    stats: store.scope(store.addScope('cluster_manager.', ClusterManagerStats)),
    deliver: () => delivered.push(now),
  });
  return {
    merge,
    /** At this time, which lies behind all before, something changes. */
    noteAt(ms: number, isMergeable = true) {
      while (now < ms) timers.advance(++now);
      merge.note(isMergeable);
    },
    /** The times of what was delivered up to this time. */
    deliveredBy(ms: number): number[] {
      while (now < ms) timers.advance(++now);
      return delivered;
    },
  };
}

t.test('after each delivery changes wait for the end of a window that begins with the first of them', async (t) => {
  const { deliveredBy, noteAt } = merging(1000);
  noteAt(10);
  noteAt(500);
  noteAt(900);
  t.same(deliveredBy(1499), [10]);
  t.same(deliveredBy(1510), [10, 1500]);
  noteAt(1600);
  t.same(deliveredBy(2590), [10, 1500], 'one that was merged begins a window, too');
  t.same(deliveredBy(2610), [10, 1500, 2600]);
  noteAt(3601);
  t.same(deliveredBy(9000), [10, 1500, 2600, 3601], 'out of it nothing waits');
});

t.test('a change that comes later than that after the last delivery takes along what waits', async (t) => {
  const { deliveredBy, noteAt } = merging(1000);
  noteAt(10);
  noteAt(500);
  noteAt(1400);
  t.same(deliveredBy(5000), [10, 1400]);
});

t.test('a host that comes or goes waits for nothing, and takes along what waits', async (t) => {
  const { deliveredBy, noteAt } = merging(1000);
  noteAt(10);
  noteAt(500);
  noteAt(600, false);
  noteAt(700, false);
  t.same(deliveredBy(5000), [10, 600, 700]);
});

t.test('without a window nothing waits', async (t) => {
  const { deliveredBy, noteAt } = merging(0);
  for (const ms of [1, 2, 3]) noteAt(ms);
  t.same(deliveredBy(5000), [1, 2, 3]);
});
