// When changes of hosts are delivered, without a clock or a cluster.

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
    /** Makes a change at this time, which is later than all before. */
    noteAt(ms: number, isMergeable = true) {
      while (now < ms) timers.advance(++now);
      merge.note(isMergeable);
    },
    /** Returns the times of deliveries up to this time. */
    deliveredBy(ms: number): number[] {
      while (now < ms) timers.advance(++now);
      return delivered;
    },
  };
}

t.test('after each delivery, changes wait for the end of a window that starts with the first of them', async (t) => {
  const { deliveredBy, noteAt } = merging(1000);
  noteAt(10);
  noteAt(500);
  noteAt(900);
  t.same(deliveredBy(1499), [10]);
  t.same(deliveredBy(1510), [10, 1500]);
  noteAt(1600);
  t.same(deliveredBy(2590), [10, 1500], 'a merged delivery starts a window, too');
  t.same(deliveredBy(2610), [10, 1500, 2600]);
  noteAt(3601);
  t.same(deliveredBy(9000), [10, 1500, 2600, 3601], 'outside a window nothing waits');
});

t.test('a change later than a window after the last delivery is delivered together with what waits', async (t) => {
  const { deliveredBy, noteAt } = merging(1000);
  noteAt(10);
  noteAt(500);
  noteAt(1400);
  t.same(deliveredBy(5000), [10, 1400]);
});

t.test('a change that adds or removes a host is delivered at once, together with what waits', async (t) => {
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
