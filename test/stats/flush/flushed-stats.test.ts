// What sinks receive: every count once, across resets, dead workers, and removed and new scopes.

import t from 'tap';
import { CounterLatches } from '../../../src/stats/flush/counter-latches.js';
import { type FlushedStat, FlushedStats } from '../../../src/stats/flush/flushed-stats.js';
import { defineLayout, Kind } from '../../../src/stats/layout.js';
import { StatsStore } from '../../../src/stats/store.js';
import { ThreadStats } from '../../../src/stats/thread-stats.js';

const LAYOUT = defineLayout({ requests: 'counter', active: 'gauge', time: 'histogram', unused: 'counter' });
const TIMES = { countedSinceMs: 0, startMs: 0, previousMs: 0, nowMs: 0 };

class Flushes {
  readonly store = new StatsStore({ workers: 1 });
  readonly #latches = new CounterLatches();

  /**
   * Performs one flush. Returns the delta of every counter, the value of every gauge, and the sample count of every
   * histogram's interval.
   */
  next(): Record<string, number> {
    this.store.flush();
    const reader = this.store.reader();
    const { sections } = reader;
    for (const _ of this.#latches.latch(reader, sections));
    const stats = new FlushedStats(reader, sections, this.#latches, TIMES);
    const seen: Record<string, number> = {};
    const addValue = (stat: FlushedStat) => {
      seen[stat.name] = stat.kind === Kind.Counter ? stat.delta : stat.value;
      if (stat.kind === Kind.Counter) seen[`${stat.name} in all`] = stat.total;
    };
    const addHistogram = (stat: FlushedStat) => {
      seen[stat.name] = stat.histogram!.interval.count();
    };
    for (const _ of stats.eachValue(1, addValue));
    for (const _ of stats.eachHistogram(1, addHistogram));
    return seen;
  }
}

t.test('a reset and the death of a worker change neither deltas nor totals', async (t) => {
  const flushes = new Flushes();
  const { store } = flushes;
  const ref = store.addScope('cluster.a.', LAYOUT);
  const worker = new ThreadStats(store.attachment(0));
  const scope = worker.scope(ref);
  scope.add(LAYOUT.at.requests, 5);
  scope.increment(LAYOUT.at.active);
  scope.record(LAYOUT.at.time, 7);
  const born = worker.dynamicCounter('cluster.a.', 'requests_503');
  born.increment();
  t.same(flushes.next(), {
    'cluster.a.active': 1,
    'cluster.a.requests': 5,
    'cluster.a.requests in all': 5,
    'cluster.a.requests_503': 1,
    'cluster.a.requests_503 in all': 1,
    'cluster.a.time': 1,
  });
  scope.add(LAYOUT.at.requests, 2);
  born.increment();
  store.resetCounters();
  scope.add(LAYOUT.at.requests, 1);
  store.workerDied(0);
  t.same(flushes.next(), {
    'cluster.a.active': 0,
    'cluster.a.requests': 3,
    'cluster.a.requests in all': 8,
    'cluster.a.requests_503': 1,
    'cluster.a.requests_503 in all': 2,
    'cluster.a.time': 0,
  });
  const successor = new ThreadStats(store.attachment(0));
  successor.scope(ref).increment(LAYOUT.at.requests);
  successor.dynamicCounter('cluster.a.', 'requests_504').increment();
  const third = flushes.next();
  t.equal(third['cluster.a.requests'], 1);
  t.equal(third['cluster.a.requests_503'], 0, 'a new name under the prefix changes nothing');
  t.equal(third['cluster.a.requests_504'], 1);
});

t.test('a scope in place of a removed one counts from 0, and hidden scopes are not shown', async (t) => {
  const flushes = new Flushes();
  const { store } = flushes;
  const first = store.addScope('cluster.a.', LAYOUT);
  store.scope(first).add(LAYOUT.at.requests, 5);
  store.scope(store.addScope('cluster.a.host.', LAYOUT, { hidden: true })).increment(LAYOUT.at.requests);
  t.equal(flushes.next()['cluster.a.requests'], 5);
  store.removeScope(first);
  const second = store.addScope('cluster.b.', LAYOUT);
  t.equal(second.base, first.base, 'the same slots');
  store.scope(second).add(LAYOUT.at.requests, 9);
  t.same(flushes.next(), { 'cluster.b.requests': 9, 'cluster.b.requests in all': 9 });
});
