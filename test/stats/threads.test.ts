import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { StatsReader } from '../../src/stats/read/reader.js';
import { renderText } from '../../src/stats/render/render-text.js';
import { StatsStore } from '../../src/stats/store.js';
import { Counted, type CountingTask } from './counting-thread.js';

const DEADLINE_MS = 20_000;

interface Running {
  readonly worker: Worker;
  readonly words: Int32Array;
}

function start(store: StatsStore, index: number, control = new SharedArrayBuffer(12)): Running {
  const ref = store.addScope('cluster.a.', Counted);
  const workerData: CountingTask = { attachment: store.attachment(index), ref, control };
  const worker = new Worker(new URL('./counting-thread.js', import.meta.url), { workerData });
  return { worker, words: new Int32Array(control) };
}

async function waitUntil(what: string, isReached: () => boolean): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS;
  while (!isReached()) {
    if (Date.now() > deadline) throw new Error(`${what} was not reached`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

t.test('no count is lost and no counter decreases while threads count and the primary reads and flushes', async (t) => {
  const store = new StatsStore({ workers: 2 });
  const threads = [start(store, 0), start(store, 1)];
  let last = 0;
  let seen = 0;
  await waitUntil('20 reads', () => {
    const now = store.value('cluster.a.total')!;
    if (now < last) t.fail(`the counter went from ${last} to ${now}`);
    if (now > last + 1000) seen++;
    last = now;
    store.flush();
    return seen >= 20;
  });
  for (const { worker, words } of threads) {
    const ended = once(worker, 'exit');
    Atomics.store(words, 0, 1);
    await ended;
  }
  store.flush();
  const rounds = threads[0]!.words[2]! + threads[1]!.words[2]!;
  t.equal(store.value('cluster.a.total'), rounds);
  t.equal(store.value('cluster.a.rq_200'), rounds);
  t.equal(store.histogram('cluster.a.time_ms')!.cumulative.count(), rounds);
  t.equal(store.histogram('cluster.a.rq_time')!.cumulative.count(), rounds);
  t.equal(store.dropped(), 0);
});

t.test(
  'the counts of a dead worker remain, its gauges are removed, and its successor continues counting',
  async (t) => {
    const store = new StatsStore({ workers: 2 });
    const survivor = start(store, 1);
    const victim = start(store, 0);
    await waitUntil('traffic', () => victim.words[2]! > 100_000 && survivor.words[2]! > 1000);
    t.equal(store.value('cluster.a.active'), 2);
    await victim.worker.terminate();
    store.workerDied(0);
    const [begun, complete] = [victim.words[1]!, victim.words[2]!];
    t.equal(store.value('cluster.a.active'), 1);

    const successor = start(store, 0, victim.words.buffer as SharedArrayBuffer);
    await waitUntil('traffic of the successor', () => successor.words[2]! > begun + 100_000);
    for (const { worker, words } of [survivor, successor]) {
      const ended = once(worker, 'exit');
      Atomics.store(words, 0, 1);
      await ended;
    }
    store.flush();
    const rounds = survivor.words[2]! + successor.words[2]!;
    // The round in which the thread was stopped may have been counted before it was recorded as completed.
    const mayCountTwice = begun - complete;
    for (const counted of [
      store.value('cluster.a.total')!,
      store.value('cluster.a.rq_200')!,
      store.histogram('cluster.a.time_ms')!.cumulative.count(),
      store.histogram('cluster.a.rq_time')!.cumulative.count(),
    ]) {
      t.ok(counted >= rounds && counted <= rounds + mayCountTwice, `${counted} of ${rounds}`);
    }
    t.equal(store.value('cluster.a.active'), 2);
  },
);

t.test('a reader on another thread needs only the attachment, and sees later counts', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const ref = store.addScope('cluster.a.', Counted);
  const reader = new StatsReader(structuredClone(store.readerAttachment()));
  store.scope(ref).increment(Counted.at.total);
  store.own.dynamicCounter('cluster.a.', 'rq_200').increment();
  store.scope(ref).record(Counted.at.time_ms, 7);
  store.flush();
  reader.refresh();
  const text = Buffer.concat([...renderText(reader, { usedOnly: true })]).toString();
  t.match(text, /^cluster\.a\.rq_200: 1\ncluster\.a\.total: 1\ncluster\.a\.time_ms: P0\(7\.05,7\.05\)/);
  store.removeScope(ref);
  t.equal(Buffer.concat([...renderText(reader, { usedOnly: true })]).toString(), '', 'a removed scope is not shown');
});
