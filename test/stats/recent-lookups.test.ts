import t from 'tap';
import { defineLayout } from '../../src/stats/layout.js';
import { StatsStore } from '../../src/stats/store.js';
import { ThreadStats } from '../../src/stats/thread-stats.js';

const Layout = defineLayout({ total: 'counter' });

function storeWithWorker(): { store: StatsStore; worker: ThreadStats } {
  const store = new StatsStore({ workers: 1 });
  store.addScope('cluster.a.', Layout);
  return { store, worker: new ThreadStats(store.attachment(0)) };
}

t.test('lookups are always counted, and names are collected only while collecting is enabled', async (t) => {
  const { store, worker } = storeWithWorker();
  const { recentLookups } = store;
  store.value('cluster.a.total');
  worker.dynamicCounter('cluster.a.', 'upstream_rq_200');
  t.same([recentLookups.isEnabled, recentLookups.total, recentLookups.entries()], [false, 3, []]);
  recentLookups.enable();
  store.value('cluster.a.total');
  store.value('cluster.a.total');
  worker.dynamicCounter('cluster.a.', 'upstream_rq_404');
  worker.dynamicHistogram('cluster.a.', 'upstream_rq_time');
  store.addScope('cluster.b.', Layout);
  t.same(recentLookups.entries(), [
    { name: 'cluster.a.upstream_rq_404', count: 1 },
    { name: 'cluster.a.upstream_rq_time', count: 1 },
    { name: 'cluster.b', count: 1 },
    { name: 'cluster.a.total', count: 2 },
  ]);
  t.equal(recentLookups.total, 8);
  recentLookups.disable();
  t.same([recentLookups.isEnabled, recentLookups.total, recentLookups.entries()], [false, 8, []]);
  recentLookups.enable();
  t.same(recentLookups.entries(), [], 'disabling drops the names');
});

t.test('clear() and a reset of counters drop names and count, and collecting continues', async (t) => {
  for (const clear of [
    (store: StatsStore) => store.recentLookups.clear(),
    (store: StatsStore) => store.resetCounters(),
  ]) {
    const { store, worker } = storeWithWorker();
    store.recentLookups.enable();
    worker.dynamicCounter('cluster.a.', 'upstream_rq_200');
    clear(store);
    t.same([store.recentLookups.total, store.recentLookups.entries()], [0, []]);
    worker.dynamicCounter('cluster.a.', 'upstream_rq_503');
    t.same(store.recentLookups.entries(), [{ name: 'cluster.a.upstream_rq_503', count: 1 }]);
    t.equal(store.recentLookups.total, 1);
  }
});

t.test('only the hundred most recent names are kept', async (t) => {
  const { store } = storeWithWorker();
  store.recentLookups.enable();
  for (let i = 0; i < 150; i++) {
    store.value('always');
    store.value(`name.${i}`);
  }
  const names = store.recentLookups.entries().map(({ name }) => name);
  t.equal(names.length, 100);
  t.equal(names.at(-1), 'always');
  t.notOk(names.includes('name.50'));
  t.ok(names.includes('name.51'));
});
