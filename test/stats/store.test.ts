import t from 'tap';
import { defineLayout } from '../../src/stats/layout.js';
import { StatsStore } from '../../src/stats/store.js';
import { ThreadStats } from '../../src/stats/thread-stats.js';

const Layout = defineLayout({
  cx_total: 'counter',
  cx_active: 'gauge',
  cx_length_ms: 'histogram',
  rq_total: 'counter',
  version_text: 'text',
});

function storeWith(workers: number): { store: StatsStore; threads: ThreadStats[] } {
  const store = new StatsStore({ workers });
  const threads = Array.from({ length: workers }, (_, worker) => new ThreadStats(store.attachment(worker)));
  return { store, threads };
}

/** Gives every worker the memory that the store has grown by. */
function deliver(store: StatsStore, threads: readonly ThreadStats[]): void {
  const chunks = structuredClone(store.chunksSince(0));
  for (const thread of threads) thread.addChunks(chunks);
}

t.test('a scope exists at 0 before traffic, and counts are summed over all threads', async (t) => {
  const { store, threads } = storeWith(2);
  const ref = structuredClone(store.addScope('cluster.a.', Layout));
  t.equal(store.value('cluster.a.cx_total'), 0);
  t.equal(store.value('cluster.a.cx_active'), 0);
  t.equal(store.value('cluster.a.nothing'), undefined);
  t.equal(store.value('cluster.b.cx_total'), undefined);
  deliver(store, threads);
  const [one, two] = threads.map((thread) => thread.scope(ref));
  one!.increment(Layout.at.cx_total);
  two!.add(Layout.at.cx_total, 41);
  one!.increment(Layout.at.cx_active);
  two!.increment(Layout.at.cx_active);
  two!.decrement(Layout.at.cx_active);
  store.scope(ref).increment(Layout.at.rq_total);
  t.equal(store.value('cluster.a.cx_total'), 42);
  t.equal(store.value('cluster.a.cx_active'), 1);
  t.equal(store.value('cluster.a.rq_total'), 1);
});

t.test('a scope that is added twice is shared until it is removed twice', async (t) => {
  const { store, threads } = storeWith(1);
  const ref = store.addScope('http.ingress.', Layout);
  t.same(store.addScope('http.ingress.', Layout), ref);
  deliver(store, threads);
  threads[0]!.scope(ref).increment(Layout.at.cx_total);
  store.removeScope(ref);
  t.equal(store.value('http.ingress.cx_total'), 1);
  store.removeScope(ref);
  t.equal(store.value('http.ingress.cx_total'), undefined);
});
