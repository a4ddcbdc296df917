import t from 'tap';
import { defineLayout, type Layout } from '../../src/stats/layout.js';
import { StatsStore } from '../../src/stats/store.js';
import { MAX_LASTING_NAMES, type ScopeRef, ThreadStats } from '../../src/stats/thread-stats.js';

const Cluster = defineLayout({
  cx_total: 'counter',
  cx_active: 'gauge',
  cx_length_ms: 'histogram',
  rq_total: 'counter',
  version_text: 'text',
});
const Breakers = defineLayout({ rq_open: 'gauge' });
const Clashing = defineLayout({ rq_open: 'counter', rq_total: 'counter' });

function storeWith(workers: number): { store: StatsStore; threads: ThreadStats[] } {
  const store = new StatsStore({ workers });
  const threads = Array.from({ length: workers }, (_, worker) => new ThreadStats(store.attachment(worker)));
  return { store, threads };
}

/** Adds a scope and passes new memory to every worker. */
function addScope(
  store: StatsStore,
  threads: readonly ThreadStats[],
  prefix: string,
  layout: Layout = Cluster,
): ScopeRef {
  const ref = structuredClone(store.addScope(prefix, layout));
  const chunks = structuredClone(store.chunksSince(0));
  for (const thread of threads) thread.addChunks(chunks);
  return ref;
}

function isUsed(store: StatsStore, name: string): boolean {
  const reader = store.reader();
  const found = reader.find(name)!;
  return reader.isUsed(found.section, found.table, found.index);
}

t.test('a scope exists with value 0 before traffic, and counts are summed over all threads', async (t) => {
  const { store, threads } = storeWith(2);
  const ref = addScope(store, threads, 'cluster.a.');
  t.equal(store.value('cluster.a.cx_total'), 0);
  t.equal(store.value('cluster.a.cx_active'), 0);
  t.equal(store.text('cluster.a.version_text'), '');
  t.equal(store.value('cluster.a.nothing'), undefined);
  t.equal(store.value('cluster.b.cx_total'), undefined);
  const [one, two] = threads.map((thread) => thread.scope(ref));
  one!.increment(Cluster.at.cx_total);
  two!.add(Cluster.at.cx_total, 41);
  one!.increment(Cluster.at.cx_active);
  two!.increment(Cluster.at.cx_active);
  two!.decrement(Cluster.at.cx_active);
  store.scope(ref).increment(Cluster.at.rq_total);
  t.equal(store.value('cluster.a.cx_total'), 42);
  t.equal(store.value('cluster.a.cx_active'), 1);
  t.equal(store.value('cluster.a.rq_total'), 1);
});

t.test("each thread can read a gauge's sum over all threads", async (t) => {
  const { store, threads } = storeWith(2);
  const ref = addScope(store, threads, 'cluster.a.');
  const other = addScope(store, threads, 'cluster.b.');
  const [one, two] = threads.map((thread) => thread.scope(ref));
  t.equal(one!.total(Cluster.at.cx_active), 0);
  one!.add(Cluster.at.cx_active, 3);
  two!.increment(Cluster.at.cx_active);
  one!.decrement(Cluster.at.cx_active);
  store.scope(ref).increment(Cluster.at.cx_active);
  threads[0]!.scope(other).increment(Cluster.at.cx_active);
  for (const scope of [one!, two!, store.scope(ref)]) t.equal(scope.total(Cluster.at.cx_active), 4);
  store.workerDied(0);
  t.equal(two!.total(Cluster.at.cx_active), 2);
});

t.test('changes by values that are not finite numbers are refused: the sum would stay invalid', async (t) => {
  const { store, threads } = storeWith(1);
  const ref = addScope(store, threads, 'cluster.a.');
  const scope = threads[0]!.scope(ref);
  const named = threads[0]!.dynamicCounter('cluster.a.', 'born_in_traffic');
  scope.add(Cluster.at.cx_total, 2);
  scope.add(Cluster.at.cx_active, 2);
  named.add(2);
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, undefined, '3'] as number[]) {
    const refusal = { name: 'TypeError', message: `a stat cannot be changed by ${String(value)}` };
    t.throws(() => scope.add(Cluster.at.cx_total, value), refusal);
    t.throws(() => scope.subtract(Cluster.at.cx_active, value), refusal);
    t.throws(() => named.add(value), refusal);
  }
  for (const name of ['cx_total', 'cx_active', 'born_in_traffic']) t.equal(store.value(`cluster.a.${name}`), 2, name);
});

t.test('colons and line ends in configured names are replaced in the names of stats', async (t) => {
  const { store } = storeWith(1);
  const ref = store.addScope('cluster.http://a:80\n.', Cluster);
  store.scope(ref).increment(Cluster.at.cx_total);
  store.own.dynamicCounter(ref.prefix, 'rq_200').increment();
  t.equal(store.value('cluster.http_a_80_.cx_total'), 1);
  t.equal(store.value('cluster.http_a_80_.rq_200'), 1);
  store.removeScope(ref);
  t.equal(store.value('cluster.http_a_80_.cx_total'), undefined);
});

t.test('a scope that was added twice is shared until it is removed twice', async (t) => {
  const { store, threads } = storeWith(1);
  const ref = addScope(store, threads, 'http.ingress.');
  t.same(store.addScope('http.ingress.', Cluster), ref);
  threads[0]!.scope(ref).increment(Cluster.at.cx_total);
  store.removeScope(ref);
  t.equal(store.value('http.ingress.cx_total'), 1);
  store.removeScope(ref);
  t.equal(store.value('http.ingress.cx_total'), undefined);
  t.throws(() => store.removeScope(ref), /no stats scope "http.ingress."/);
});

t.test('two layouts share a prefix unless they have a name in common', async (t) => {
  const { store } = storeWith(1);
  store.addScope('cluster.a.', Cluster);
  store.addScope('cluster.a.', Breakers);
  t.equal(store.value('cluster.a.cx_total'), 0);
  t.equal(store.value('cluster.a.rq_open'), 0);
  t.throws(() => store.addScope('cluster.a.', Clashing), /"cluster.a.".*"rq_total"/);
});

t.test('the block of a removed scope is reused, and nothing of the old scope is visible', async (t) => {
  const { store, threads } = storeWith(1);
  const first = addScope(store, threads, 'cluster.old.');
  const scope = threads[0]!.scope(first);
  scope.add(Cluster.at.cx_total, 5);
  scope.increment(Cluster.at.cx_active);
  scope.record(Cluster.at.cx_length_ms, 115);
  store.setText(first, Cluster.at.version_text, 'v1');
  threads[0]!.dynamicCounter('cluster.old.', 'upstream_rq_200').increment();
  threads[0]!.dynamicHistogram('cluster.old.', 'upstream_rq_time').record(7);
  store.flush();
  store.resetCounters();
  store.removeScope(first);
  t.equal(store.value('cluster.old.upstream_rq_200'), undefined);
  t.equal(store.histogram('cluster.old.upstream_rq_time'), undefined);

  const second = addScope(store, threads, 'cluster.new.');
  t.same([second.chunk, second.base], [first.chunk, first.base]);
  t.equal(store.value('cluster.new.cx_total'), 0);
  t.equal(store.value('cluster.new.cx_active'), 0);
  t.equal(store.text('cluster.new.version_text'), '');
  t.notOk(isUsed(store, 'cluster.new.cx_total'));
  t.notOk(isUsed(store, 'cluster.new.cx_active'));
  store.flush();
  t.equal(store.histogram('cluster.new.cx_length_ms'), undefined);
  const again = threads[0]!.scope(second);
  again.record(Cluster.at.cx_length_ms, 7);
  again.increment(Cluster.at.cx_total);
  threads[0]!.dynamicCounter('cluster.new.', 'upstream_rq_200').increment();
  threads[0]!.dynamicHistogram('cluster.new.', 'upstream_rq_time').record(31);
  store.flush();
  t.equal(store.histogram('cluster.new.cx_length_ms')!.cumulative.count(), 1);
  t.same(store.histogram('cluster.new.upstream_rq_time')!.cumulative.quantiles([0, 1]), [31.5, 31.5]);
  t.equal(store.value('cluster.new.cx_total'), 1);
  t.equal(store.value('cluster.new.upstream_rq_200'), 1);
});

t.test('memory does not grow while scopes with names and histograms are added and removed', async (t) => {
  const { store, threads } = storeWith(1);
  const range = threads[0]!.range;
  const turn = (i: number) => {
    const prefix = `cluster.c${String(i).padStart(6, '0')}.`;
    const ref = addScope(store, threads, prefix);
    const scope = threads[0]!.scope(ref);
    for (const ms of [3, 30, 300, 3000]) scope.record(Cluster.at.cx_length_ms, ms);
    threads[0]!.dynamicCounter(prefix, 'upstream_rq_200').increment();
    const time = threads[0]!.dynamicHistogram(prefix, 'upstream_rq_time');
    for (const ms of [5, 50, 500]) time.record(ms);
    store.flush();
    store.removeScope(ref);
  };
  for (let i = 0; i < 10; i++) turn(i);
  const [version, worker, primary] = [store.version, range.end(), store.own.range.end()];
  for (let i = 10; i < 5000; i++) turn(i);
  t.same([store.version, range.end(), store.own.range.end()], [version, worker, primary]);
  t.equal(store.dropped(), 0);
});

t.test('a reset sets counters to 0 and leaves gauges, histograms and use unchanged', async (t) => {
  const { store, threads } = storeWith(2);
  const ref = addScope(store, threads, 'cluster.a.');
  const scope = threads[0]!.scope(ref);
  scope.add(Cluster.at.cx_total, 5);
  scope.increment(Cluster.at.cx_active);
  scope.record(Cluster.at.cx_length_ms, 7);
  const ok = threads[1]!.dynamicCounter('cluster.a.', 'upstream_rq_200');
  ok.add(3);
  store.flush();
  store.resetCounters();
  t.equal(store.value('cluster.a.cx_total'), 0);
  t.equal(store.value('cluster.a.upstream_rq_200'), 0);
  t.equal(store.value('cluster.a.cx_active'), 1);
  t.equal(store.histogram('cluster.a.cx_length_ms')!.cumulative.count(), 1);
  t.ok(isUsed(store, 'cluster.a.cx_total'));
  t.ok(isUsed(store, 'cluster.a.upstream_rq_200'));
  scope.increment(Cluster.at.cx_total);
  ok.increment();
  t.equal(store.value('cluster.a.cx_total'), 1);
  t.equal(store.value('cluster.a.upstream_rq_200'), 1);
});

t.test('many counters are reset in steps', async (t) => {
  const { store } = storeWith(1);
  const refs = Array.from({ length: 20_000 }, (_, i) => store.addScope(`cluster.c${i}.`, Cluster));
  for (const ref of refs) store.scope(ref).increment(Cluster.at.cx_total);
  store.own.dynamicCounter('cluster.c0.', 'rq_200').increment();
  t.ok([...store.resetInSteps()].length > 1);
  t.ok(refs.every((ref) => store.valueOf(ref, Cluster.at.cx_total) === 0));
  t.equal(store.value('cluster.c0.rq_200'), 0);
});

t.test('a stat counts as used once it was changed, a gauge also when it is 0 again', async (t) => {
  const { store, threads } = storeWith(1);
  const ref = addScope(store, threads, 'cluster.a.');
  addScope(store, threads, 'cluster.a.', Breakers);
  const scope = threads[0]!.scope(ref);
  for (const name of ['cx_total', 'cx_active', 'cx_length_ms', 'version_text', 'rq_open']) {
    t.notOk(isUsed(store, `cluster.a.${name}`), name);
  }
  scope.increment(Cluster.at.cx_total);
  scope.increment(Cluster.at.cx_active);
  scope.decrement(Cluster.at.cx_active);
  scope.record(Cluster.at.cx_length_ms, 0);
  store.scope(store.addScope('cluster.a.', Breakers)).set(Breakers.at.rq_open, 0);
  store.setText(ref, Cluster.at.version_text, '');
  t.notOk(isUsed(store, 'cluster.a.cx_length_ms'), 'not before a flush');
  store.flush();
  for (const name of ['cx_total', 'cx_active', 'cx_length_ms', 'version_text', 'rq_open']) {
    t.ok(isUsed(store, `cluster.a.${name}`), name);
  }
  t.equal(store.value('cluster.a.cx_active'), 0);
});

t.test('a gauge is the sum of what the primary sets and the workers add', async (t) => {
  const { store, threads } = storeWith(2);
  const ref = addScope(store, threads, 'cluster.a.');
  const own = store.scope(ref);
  own.set(Cluster.at.cx_active, 10);
  own.set(Cluster.at.cx_active, 4);
  threads[0]!.scope(ref).add(Cluster.at.cx_active, 7);
  threads[1]!.scope(ref).subtract(Cluster.at.cx_active, 1);
  t.equal(store.value('cluster.a.cx_active'), 10);
  own.increment(Cluster.at.cx_active);
  own.decrement(Cluster.at.cx_active);
  own.decrement(Cluster.at.cx_active);
  t.equal(store.value('cluster.a.cx_active'), 9);
  t.equal(store.valueOf(ref, Cluster.at.cx_active), 9);
});

t.test('names that traffic creates are merged over threads, and a thread gets one handle per name', async (t) => {
  const { store, threads } = storeWith(2);
  t.equal(store.value('cluster.a.upstream_rq_200'), undefined);
  const handle = threads[0]!.dynamicCounter('cluster.a.', 'upstream_rq_200');
  t.equal(threads[0]!.dynamicCounter('cluster.a.', 'upstream_rq_200'), handle);
  handle.increment();
  threads[1]!.dynamicCounter('cluster.a.', 'upstream_rq_200').add(2);
  store.own.dynamicCounter('cluster.a.', 'upstream_rq_200').add(4);
  threads[0]!.dynamicGauge('cluster.a.', 'größe').set(3);
  threads[1]!.dynamicGauge('cluster.a.', 'größe').increment();
  t.equal(store.value('cluster.a.upstream_rq_200'), 7);
  t.equal(store.value('cluster.a.größe'), 4);
  threads[0]!.dynamicHistogram('cluster.a.', 'upstream_rq_time').record(115);
  threads[1]!.dynamicHistogram('cluster.a.', 'upstream_rq_time').record(7);
  t.equal(store.histogram('cluster.a.upstream_rq_time'), undefined);
  store.flush();
  t.same(store.histogram('cluster.a.upstream_rq_time')!.cumulative.quantiles([0, 1]), [7.05, 115]);
  t.throws(() => threads[0]!.dynamicCounter('cluster.a.', 'upstream_rq_time'), /another kind/);
});

t.test('a name whose scope was removed and added again starts at 0 with a new handle', async (t) => {
  const { store, threads } = storeWith(1);
  const ref = addScope(store, threads, 'cluster.a.');
  const old = threads[0]!.dynamicCounter('cluster.a.', 'upstream_rq_200');
  old.add(9);
  t.equal(store.value('cluster.a.upstream_rq_200'), 9);
  store.removeScope(ref);
  addScope(store, threads, 'cluster.a.');
  t.equal(store.value('cluster.a.upstream_rq_200'), undefined);
  const handle = threads[0]!.dynamicCounter('cluster.a.', 'upstream_rq_200');
  t.not(handle, old);
  handle.increment();
  t.equal(store.value('cluster.a.upstream_rq_200'), 1);
});

t.test('a full range loses samples, counts them, and is extended at the next flush', async (t) => {
  const { store, threads } = storeWith(1);
  const [worker] = threads;
  const name = 'x'.repeat(4000);
  let made = 0;
  while (worker!.dropped === 0) worker!.dynamicCounter('lost.', `${name}${made++}`).increment();
  t.equal(store.dropped(), 1);
  store.flush();
  worker!.addChunks(store.chunksSince(0));
  worker!.dynamicCounter('lost.', `${name}${made - 1}`).increment();
  t.equal(worker!.dropped, 1);
  for (const at of [0, made - 2, made - 1]) t.equal(store.value(`lost.${name}${at}`), 1);
});

t.test('names that no scope removes are bounded, and those that exist go on', async (t) => {
  const { store, threads } = storeWith(1);
  const [worker] = threads;
  for (let made = 0; made < MAX_LASTING_NAMES; made++) {
    worker!.dynamicCounter('', `p${made}.n`).increment();
    if (worker!.dropped === 0) continue;
    store.flush();
    worker!.addChunks(store.chunksSince(0));
    worker!.dynamicCounter('', `p${made}.n`).increment();
  }
  const before = worker!.dropped;
  worker!.dynamicCounter('', 'one.more').increment();
  t.equal(worker!.dropped, before + 1);
  worker!.dynamicCounter('scope.', 'one.more').increment();
  worker!.dynamicCounter('', 'p0.n').increment();
  t.equal(worker!.dropped, before + 1);
  t.equal(store.value('scope.one.more'), 1);
  t.equal(store.value('p0.n'), 2);
});

t.test('a thread without the memory of a scope reports that', async (t) => {
  const { store, threads } = storeWith(1);
  const ref = store.addScope('cluster.a.', Cluster);
  t.throws(() => threads[0]!.scope(ref), /"cluster.a.".*chunk/);
});
