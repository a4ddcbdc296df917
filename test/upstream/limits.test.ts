import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { Priority } from '../../src/common/priority.js';
import { Runtime } from '../../src/runtime/runtime.js';
import {
  ClusterLimits,
  DEFAULT_THRESHOLDS,
  LimitKind,
  limitWord,
  RuntimeThresholds,
} from '../../src/upstream/limits.js';
import { HOST_WORDS, HostWord, SharedWords, SharedWordsOwner } from '../../src/upstream/shared-words.js';
import { setValues } from '../runtime/values.js';

const THRESHOLDS = { ...DEFAULT_THRESHOLDS, maxRequests: 2, maxRetries: 0 };

t.test('a breaker grants up to its threshold, separately for each kind and priority', async (t) => {
  const owner = new SharedWordsOwner(4096);
  const block = owner.allocateCluster();
  const runtime = new Runtime();
  const thresholds = new RuntimeThresholds('api.example', [THRESHOLDS, DEFAULT_THRESHOLDS], runtime);
  const limits = new ClusterLimits(new SharedWords(owner.handle(0)), block, thresholds);
  t.ok(limits.tryAcquire(LimitKind.Requests, Priority.Default));
  t.notOk(limits.isOpen(LimitKind.Requests, Priority.Default));
  t.ok(limits.tryAcquire(LimitKind.Requests, Priority.Default));
  t.ok(limits.isOpen(LimitKind.Requests, Priority.Default));
  t.notOk(limits.tryAcquire(LimitKind.Requests, Priority.Default));
  t.equal(limits.current(LimitKind.Requests, Priority.Default), 2, 'a refusal changes no count');
  t.ok(limits.tryAcquire(LimitKind.Requests, Priority.High));
  t.ok(limits.tryAcquire(LimitKind.PendingRequests, Priority.Default));
  t.notOk(limits.tryAcquire(LimitKind.Retries, Priority.Default), 'a threshold of 0 refuses all');
  limits.release(LimitKind.Requests, Priority.Default);
  t.ok(limits.tryAcquire(LimitKind.Requests, Priority.Default));
  limits.acquire(LimitKind.Requests, Priority.Default);
  t.equal(owner.read(limitWord(block, LimitKind.Requests, Priority.Default)), 3);
  t.notOk(limits.tryAcquire(LimitKind.Requests, Priority.Default));
  setValues(runtime, { 'circuit_breakers.api.example.default.max_requests': '4294967295' });
  t.ok(limits.tryAcquire(LimitKind.Requests, Priority.Default), 'runtime raises a threshold up to the largest number');
  setValues(runtime, {});
  t.notOk(limits.tryAcquire(LimitKind.Requests, Priority.Default), 'the configuration applies again');
});

t.test('a retry budget grants a share of the current requests, and a minimum', async (t) => {
  const owner = new SharedWordsOwner(4096);
  const runtime = new Runtime();
  const withBudget = { ...DEFAULT_THRESHOLDS, maxRetries: 0, retryBudget: { percent: 25, minConcurrency: 2 } };
  const thresholds = new RuntimeThresholds('api', [withBudget, { ...DEFAULT_THRESHOLDS, maxRetries: 1 }], runtime);
  const limits = new ClusterLimits(new SharedWords(owner.handle(0)), owner.allocateCluster(), thresholds);
  const granted = (priority: Priority): number => {
    let count = 0;
    while (limits.tryAcquireRetry(priority)) count++;
    for (let i = 0; i < count; i++) limits.release(LimitKind.Retries, priority);
    return count;
  };
  t.equal(granted(Priority.Default), 2);
  for (let i = 0; i < 9; i++) limits.acquire(LimitKind.Requests);
  for (let i = 0; i < 6; i++) limits.acquire(LimitKind.PendingRequests);
  t.equal(granted(Priority.Default), 3, 'a quarter of 15');
  t.equal(granted(Priority.High), 1, 'max_retries where there is no budget');
  setValues(runtime, { 'circuit_breakers.api.default.retry_budget.budget_percent': '50.5' });
  t.equal(granted(Priority.Default), 7);
  setValues(runtime, { 'circuit_breakers.api.high.retry_budget.min_retry_concurrency': '5' });
  t.equal(granted(Priority.High), 5, 'runtime alone can set one');
  for (let i = 0; i < 40; i++) limits.acquire(LimitKind.Requests, Priority.High);
  t.equal(granted(Priority.High), 8, 'each priority by its own requests');
});

t.test('blocks do not overlap, and are reused only when no worker can hold them', async (t) => {
  const owner = new SharedWordsOwner(4096);
  const cluster = owner.allocateCluster();
  const hosts = [owner.allocateHost(), owner.allocateHost(), owner.allocateHost()];
  const next = owner.allocateCluster();
  const starts = [cluster, ...hosts, next];
  t.same(
    starts.map((start, i) => (starts[i + 1] ?? 1e9) - start >= (i === 0 ? 16 : HOST_WORDS)),
    starts.map(() => true),
  );
  const worker = new SharedWords(owner.handle(1));
  worker.acquire(hosts[1]! + HostWord.ActiveRequests);
  owner.retireHost(hosts[1]!, 5);
  owner.reclaim(4);
  t.not(owner.allocateHost(), hosts[1]);
  owner.reclaim(5);
  t.equal(owner.allocateHost(), hosts[1]);
  t.equal(owner.read(hosts[1]! + HostWord.ActiveRequests), 0, 'as new');
  owner.forgetWorker(1);
  t.equal(owner.read(hosts[1]! + HostWord.ActiveRequests), 0, 'the former owner has no part in it');
  t.throws(() => {
    for (;;) owner.allocateHost();
  }, /all 1024 shared words are in use/);
});

/**
 * A worker that acquires and releases at random, and ends holding `keep` requests. It reports how often it exceeded the limit.
 */
const CONTENDER = `
  const { workerData, parentPort } = require('node:worker_threads');
  import(workerData.words).then(async ({ SharedWords }) => {
    const { ClusterLimits, RuntimeThresholds } = await import(workerData.limits);
    const { Random } = await import(workerData.random);
    const shared = new SharedWords(workerData.handle);
    const thresholds = { maxConnections: 1, maxPendingRequests: 1, maxRequests: workerData.limit, maxRetries: 1 };
    const limits = new ClusterLimits(shared, workerData.block, new RuntimeThresholds('c', [thresholds, thresholds]));
    const granted = new Int32Array(workerData.granted);
    const random = new Random(workerData.seed);
    let held = 0, over = 0, grants = 0, refusals = 0;
    // Another worker may hold all of them as long as it is not scheduled.
    for (let i = 0; i < 300_000 || (grants === 0 && i < 1_000_000_000); i++) {
      if (random.below(2) === 0) {
        if (limits.tryAcquire(2, 0)) {
          held++; grants++;
          if (Atomics.add(granted, 0, 1) >= workerData.limit) over++;
        } else refusals++;
      } else if (held > 0) {
        held--;
        Atomics.sub(granted, 0, 1);
        limits.release(2, 0);
      }
    }
    while (held > workerData.keep) { held--; Atomics.sub(granted, 0, 1); limits.release(2, 0); }
    while (held < workerData.keep) { held++; limits.acquire(2, 0); }
    parentPort.postMessage({ over, grants, refusals });
  });
`;

async function contend(owner: SharedWordsOwner, block: number, keeps: number[], limit: number) {
  const granted = new SharedArrayBuffer(4);
  const file = (path: string) => new URL(`../../src/${path}.js`, import.meta.url).href;
  return await Promise.all(
    keeps.map(async (keep, index) => {
      const worker = new Worker(CONTENDER, {
        eval: true,
        workerData: {
          words: file('upstream/shared-words'),
          limits: file('upstream/limits'),
          random: file('common/random'),
          handle: owner.handle(index),
          block,
          granted,
          limit,
          keep,
          seed: index,
        },
      });
      const [[report]] = await Promise.all([once(worker, 'message'), once(worker, 'exit')]);
      return report as { over: number; grants: number; refusals: number };
    }),
  );
}

t.test('competing workers never exceed the limit together, and leave no count behind', async (t) => {
  const owner = new SharedWordsOwner(4096);
  const block = owner.allocateCluster();
  const reports = await contend(owner, block, [0, 0, 0, 0], 5);
  for (const { over, grants, refusals } of reports) {
    t.equal(over, 0);
    t.ok(grants > 0 && refusals > 0, 'the limit was met');
  }
  t.equal(owner.read(limitWord(block, LimitKind.Requests, Priority.Default)), 0);
});

t.test("a dead worker's part is subtracted, the others' parts stay", async (t) => {
  const owner = new SharedWordsOwner(4096);
  const block = owner.allocateCluster();
  await contend(owner, block, [3, 4, 0], 20);
  const word = limitWord(block, LimitKind.Requests, Priority.Default);
  t.equal(owner.read(word), 7);
  owner.forgetWorker(0);
  t.equal(owner.read(word), 4);
  owner.forgetWorker(0);
  t.equal(owner.read(word), 4, 'once');
  const successor = new SharedWords(owner.handle(0));
  successor.acquire(word);
  owner.forgetWorker(1);
  t.equal(owner.read(word), 1);
  owner.forgetWorker(0);
  t.equal(owner.read(word), 0);
});

t.test('a worker that is terminated while counting leaves a correct sum', async (t) => {
  const owner = new SharedWordsOwner(4096);
  const word = owner.allocateHost() + HostWord.ActiveRequests;
  for (let round = 0; round < 12; round++) {
    const worker = new Worker(
      `const { workerData, parentPort } = require('node:worker_threads');
       import(workerData.words).then(({ SharedWords }) => {
         const shared = new SharedWords(workerData.handle);
         parentPort.postMessage('counting');
         for (let held = 0; ; ) {
           if (shared.tryAcquire(workerData.word, 50)) held++;
           if (held > 40) while (held > 10) { shared.release(workerData.word); held--; }
           shared.acquire(workerData.word);
           shared.release(workerData.word);
         }
       });`,
      {
        eval: true,
        workerData: {
          words: new URL('../../src/upstream/shared-words.js', import.meta.url).href,
          handle: owner.handle(3),
          word,
        },
      },
    );
    await once(worker, 'message');
    await worker.terminate();
    owner.forgetWorker(3);
    t.equal(owner.read(word), 0);
  }
});
