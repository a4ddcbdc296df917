import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { RenderPool, type RenderPoolOptions } from '../../../src/admin/render/render-pool.js';
import { renderFrom, type StatsRendering } from '../../../src/admin/render/render-stats.js';
import { ClusterStats } from '../../../src/stats/layouts/cluster.js';
import { StatsStore } from '../../../src/stats/store.js';
import { httpRequest } from '../../e2e/harness/http-client.js';
import { connectRaw } from '../../e2e/harness/raw-connection.js';
import { cannotFailCalls, failCalls } from '../../e2e/harness/system-calls.js';
import { waitFor } from '../../e2e/harness/wait-for.js';
import { captureLog } from '../capture-log.js';
import { startAdmin } from '../fixture.js';

const TEXT: StatsRendering = { form: 'text', histogramBuckets: 'summary' };

function storeWithStats(clusters: number): StatsStore {
  const store = new StatsStore({ workers: 1 });
  for (let i = 0; i < clusters; i++) store.addScope(`cluster.c${i}.`, ClusterStats);
  return store;
}

function newPool(t: Test, options?: RenderPoolOptions): RenderPool {
  const pool = new RenderPool(options);
  t.teardown(() => pool.close());
  return pool;
}

/** Starts to render stats of a store on a thread. */
function rendered(pool: RenderPool, store: StatsStore, rendering = TEXT) {
  return pool.render('stats', { extent: store.extent, rendering }, () => store.readerAttachment());
}

async function bytesOf(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

t.test('a thread renders the same as the primary, including later changes', async (t) => {
  const store = storeWithStats(300);
  const pool = newPool(t);
  const monitoring = { form: 'monitoring', isProtobuf: true, histograms: 'native', maxBuckets: 20 } as const;
  const renderings: StatsRendering[] = [
    TEXT,
    { form: 'json', histogramBuckets: 'detailed', pattern: 'c1.*cx_active', usedOnly: false },
    { ...monitoring, textReadouts: true },
  ];
  for (const rendering of renderings) {
    const made = await bytesOf(await rendered(pool, store, rendering));
    t.ok(made.equals(Buffer.concat([...renderFrom(store.reader(), rendering)])), rendering.form);
    store.addScope(`cluster.${rendering.form}.`, ClusterStats);
    store.own.dynamicCounter('cluster.c1.', `upstream_rq_${rendering.form}`).add(1);
  }
});

t.test('a thread gets the memory of the stats again only after it has grown', async (t) => {
  const store = storeWithStats(10);
  const pool = newPool(t);
  let supplies = 0;
  const body = async () => {
    const request = { extent: store.extent, rendering: TEXT };
    const supply = () => {
      supplies++;
      return store.readerAttachment();
    };
    return (await bytesOf(await pool.render('stats', request, supply))).toString();
  };
  for (let i = 0; i < 10; i++) await body();
  t.ok(supplies <= pool.threads, `${supplies} times for ${pool.threads} threads`);
  const before = store.version;
  for (let i = 0; store.version === before; i++) store.addScope(`cluster.more${i}.`, ClusterStats);
  t.match(await body(), 'cluster.more0.upstream_rq_total: 0\n');
});

t.test('many bodies are rendered concurrently', async (t) => {
  const store = storeWithStats(50);
  const pool = newPool(t);
  const expected = Buffer.concat([...renderFrom(store.reader(), TEXT)]);
  const bodies = await Promise.all(Array.from({ length: 200 }, async () => bytesOf(await rendered(pool, store))));
  t.ok(bodies.every((body) => body.equals(expected)));
  t.ok(pool.threads <= 2);
});

t.test('a body that is not read is paused, and does not block others', async (t) => {
  const store = storeWithStats(4000);
  const expected = [...renderFrom(store.reader(), TEXT)].reduce((sum, piece) => sum + piece.length, 0);
  const pool = newPool(t);
  const before = process.memoryUsage().arrayBuffers;
  const waiting = await Promise.all(Array.from({ length: 8 }, () => rendered(pool, store)));
  const small = { ...TEXT, pattern: '^cluster.c77.membership_total$' };
  t.equal((await bytesOf(await rendered(pool, store, small))).toString(), 'cluster.c77.membership_total: 0\n');
  let made = -1;
  await waitFor(() => made === (made = process.memoryUsage().arrayBuffers - before));
  t.ok(made < 2 * expected, `${made} bytes of 8 bodies of ${expected} were rendered ahead`);
  for (const pieces of waiting.slice(1)) await pieces.return!();
  t.equal((await bytesOf(waiting[0]!)).length, expected, 'the first continues where it stopped');
  for await (const _ of waiting[1]!) t.fail('an abandoned body has no more pieces');
});

t.test('idle threads end', async (t) => {
  const pool = newPool(t, { idleMs: 10 });
  const store = storeWithStats(10);
  t.equal(pool.threads, 0);
  await bytesOf(await rendered(pool, store));
  await waitFor(() => pool.threads === 0);
  t.ok((await bytesOf(await rendered(pool, store))).length > 0, 'new threads start');
});

t.test('no thread starts for a body that was requested just before the end', async (t) => {
  const pool = newPool(t);
  const body = rendered(pool, storeWithStats(1));
  const closed = pool.close();
  await t.rejects(body, { name: 'EndingError' });
  await closed;
  t.same([pool.threads, pool.bodies], [0, 0]);
});

t.test('a rendering failure is an error, and the thread continues', async (t) => {
  const pool = newPool(t);
  const store = storeWithStats(1);
  await t.rejects(rendered(pool, store, { ...TEXT, pattern: '(' }), /invalid regular/);
  t.ok(await bytesOf(await rendered(pool, store)));
});

t.test('a dying thread causes a 500 or an incomplete answer, and a log line', async (t) => {
  const entry = new URL('dying-thread.js', import.meta.url);
  const { port, services } = await startAdmin(t, {}, new RenderPool({ entry }));
  const log = captureLog(t);
  for (let i = 0; i < 300; i++) services.stats.addScope(`cluster.c${i}.`, ClusterStats);
  t.match(await httpRequest(port, '/stats'), { status: 500, body: /^\/stats failed: a render thread has died/ });
  t.match(log.text(), 'a render thread has died');
  await t.rejects(httpRequest(port, '/stats?format=json'), 'the answer is incomplete');
  t.match(log.text(), 'was cut short');
  t.equal((await httpRequest(port, '/ready')).status, 200);
});

t.test('a thread that cannot start causes a 500, and later threads start', async (t) => {
  const path = join(t.testdir(), 'entry.mjs');
  const { port, services } = await startAdmin(t, {}, new RenderPool({ entry: pathToFileURL(path) }));
  captureLog(t);
  for (let i = 0; i < 300; i++) services.stats.addScope(`cluster.c${i}.`, ClusterStats);
  const failed = { status: 500, body: /^\/stats failed: a render thread has died: .*entry\.mjs/ };
  const answers = await Promise.all(Array.from({ length: 70 }, () => httpRequest(port, '/stats')));
  t.ok(answers.length === 70 && answers.every(({ status }) => status === 500));
  t.match(await httpRequest(port, '/stats'), failed);
  t.equal(services.renders.bodies, 0);
  const real = new URL('../../../src/admin/render/render-thread.js', import.meta.url);
  writeFileSync(path, `export { default } from ${JSON.stringify(real.href)};`);
  t.equal((await httpRequest(port, '/stats')).status, 200);
});

t.test('a body without a thread is an error, and later ones are rendered', { skip: cannotFailCalls }, async (t) => {
  const pool = newPool(t);
  const store = storeWithStats(1);
  const recover = await failCalls(t, process.pid, 'clone,clone3', 'EAGAIN');
  for (let times = 0; times < 2; times++) await t.rejects(rendered(pool, store), /a render thread has died: .*EAGAIN/);
  await recover();
  t.equal(pool.bodies, 0);
  t.ok((await bytesOf(await rendered(pool, store))).length > 0);
});

t.test('a client that leaves ends its body', async (t) => {
  const { port, services } = await startAdmin(t);
  for (let i = 0; i < 4000; i++) services.stats.addScope(`cluster.c${i}.`, ClusterStats);
  const connection = await connectRaw(t, port);
  connection.socket.pause();
  connection.write('GET /stats HTTP/1.1\r\nHost: a\r\n\r\n');
  await waitFor(() => services.renders.bodies === 1);
  connection.socket.destroy();
  await waitFor(() => services.renders.bodies === 0);
  t.equal((await httpRequest(port, '/stats', { method: 'HEAD' })).status, 200);
  await waitFor(() => services.renders.bodies === 0);
});

t.test('a server that ends while bodies are rendered logs no error', async (t) => {
  const { port, server, services } = await startAdmin(t);
  for (let i = 0; i < 4000; i++) services.stats.addScope(`cluster.c${i}.`, ClusterStats);
  const log = captureLog(t);
  for (const path of ['/stats', '/stats/monitoring', '/stats?format=json']) {
    const connection = await connectRaw(t, port);
    connection.socket.pause();
    connection.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  }
  await waitFor(() => services.renders.bodies === 3);
  await server.close(0);
  await waitFor(() => services.renders.bodies === 0);
  t.equal(log.text(), '');
});
