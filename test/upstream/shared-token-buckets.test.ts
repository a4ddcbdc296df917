// Token buckets in shared memory: threads share the tokens, and a thread that dies loses none.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import {
  forgetTokenBucketThread,
  SharedTokenBuckets,
  tokenBucketMemory,
} from '../../src/upstream/shared-token-buckets.js';
import { type TokenBucket, TokenRate } from '../../src/upstream/token-bucket.js';

const RATE = { maxTokens: 10, tokensPerFill: 1, fillIntervalMs: 1000 };
const FILES = {
  shared: new URL('../../src/upstream/shared-token-buckets.js', import.meta.url).href,
  bucket: new URL('../../src/upstream/token-bucket.js', import.meta.url).href,
};

function taken(bucket: TokenBucket, nowMs: number, count: number): number {
  let tokens = 0;
  for (let i = 0; i < count; i++) if (bucket.take(nowMs)) tokens++;
  return tokens;
}

/** Returns the buckets of a thread whose clock reads `nowMs`. */
function bucketsOf(memory: SharedArrayBuffer, thread: number, nowMs = 0): SharedTokenBuckets {
  return new SharedTokenBuckets(memory, thread, () => nowMs);
}

t.test('equal names share a bucket', async (t) => {
  const memory = tokenBucketMemory();
  const [one, other] = [bucketsOf(memory, 1), bucketsOf(memory, 2)];
  const a = one.open('a', new TokenRate(RATE));
  const same = other.open('a', new TokenRate(RATE));
  const b = other.open('b', new TokenRate(RATE));
  t.equal(a.maxTokens, 10);
  t.equal(taken(a, 5000, 7), 7);
  t.equal(same.tokens(5000), 3);
  t.equal(taken(same, 5000, 7), 3);
  t.equal(a.msToToken(5000), 1000);
  t.equal(b.tokens(5000), 10);
  t.equal(taken(other.open('a', new TokenRate(RATE)), 6000, 7), 1, 'a reopened bucket keeps its state');
});

t.test('a thread whose turn began long ago gets exactly the available tokens', async (t) => {
  const memory = tokenBucketMemory();
  const [late, other] = [bucketsOf(memory, 1, 25_000), bucketsOf(memory, 2)].map((buckets) =>
    buckets.open('a', new TokenRate(RATE)),
  );
  t.equal(taken(other!, 25_000, 3), 3);
  t.equal(taken(late!, 5000, 10), 7);
});

/** A thread that takes tokens until `nowMs` is `untilMs`. */
const TAKER = `
  const { workerData, parentPort } = require('node:worker_threads');
  Promise.all([import(workerData.shared), import(workerData.bucket)]).then(([{ SharedTokenBuckets }, { TokenRate }]) => {
    const buckets = new SharedTokenBuckets(workerData.memory, workerData.thread, () => 0);
    let tokens = 0;
    for (let nowMs = 1000; nowMs <= workerData.untilMs; nowMs++)
      for (let name = 0; name < workerData.names; name++) {
        const bucket = buckets.open('bucket ' + name, new TokenRate(workerData.rate));
        while (bucket.take(nowMs)) tokens++;
      }
    parentPort.postMessage(tokens);
  });
`;

t.test('concurrent threads together get exactly the available tokens', async (t) => {
  const memory = tokenBucketMemory();
  const rate = { maxTokens: 5000, tokensPerFill: 10, fillIntervalMs: 1 };
  const untilMs = 3000;
  const names = 3;
  const counts = await Promise.all(
    [1, 2, 3].map(async (thread) => {
      const workerData = { ...FILES, memory, thread, rate, untilMs, names };
      const [tokens] = await once(new Worker(TAKER, { eval: true, workerData }), 'message');
      return tokens as number;
    }),
  );
  t.equal(counts[0]! + counts[1]! + counts[2]!, names * (5000 + 10 * (untilMs - 1000)));
});

t.test('a thread that ends while holding the lock blocks no other', async (t) => {
  const memory = tokenBucketMemory();
  const words = new Int32Array(memory);
  const workerData = { ...FILES, memory, thread: 2, rate: RATE, untilMs: 1000, names: 1 };
  Atomics.store(words, 0, 1);
  const worker = new Worker(TAKER, { eval: true, workerData });
  let tokens: number | undefined;
  worker.on('message', (count: number) => (tokens = count));
  await once(worker, 'online');
  forgetTokenBucketThread(memory, 3);
  t.equal(tokens, undefined, 'another thread has it');
  t.equal(Atomics.load(words, 0), 1);
  forgetTokenBucketThread(memory, 1);
  await once(worker, 'exit');
  t.equal(tokens, 10);
});

t.test('many new buckets replace few of the buckets in use', async (t) => {
  const buckets = bucketsOf(tokenBucketMemory(), 1);
  const open = (name: string, rate: typeof RATE) => buckets.open(name, new TokenRate(rate));
  const slow = { ...RATE, fillIntervalMs: 60_000 };
  const limits = Array.from({ length: 200 }, (_, index) => open(`limit ${index}`, RATE));
  for (let value = 0; value < 70_000; value++) open(`value ${value}`, slow).take(1000);
  for (const limit of limits) taken(limit, 1000, 10);
  // Their chance to replace a certain bucket is that to be in its set, 1 of 4096.
  for (let value = 70_000; value < 70_500; value++) open(`value ${value}`, slow).take(1000);
  const replaced = limits.filter((limit) => limit.tokens(1000) > 0).length;
  t.ok(replaced < 100, `${replaced} of 200 are full again`);
});

t.test('without room the bucket that is full first is replaced', async (t) => {
  const memory = tokenBucketMemory(4);
  const buckets = bucketsOf(memory, 1);
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => buckets.open(name, new TokenRate(RATE)));
  t.equal(taken(a!, 1000, 9), 9);
  t.equal(taken(b!, 1000, 3), 3);
  t.equal(taken(c!, 1000, 8), 8);
  t.equal(taken(d!, 1000, 5), 5);
  const e = buckets.open('e', new TokenRate(RATE));
  t.equal(taken(e, 1000, 9), 9);
  t.equal(a!.tokens(1000), 1);
  t.equal(c!.tokens(1000), 2);
  t.equal(d!.tokens(1000), 5);
  t.equal(taken(b!, 1000, 20), 10, 'a replaced bucket is full when it is used again');
  t.equal(taken(d!, 1000, 20), 10, 'now the other one was full first');
  t.equal(e.tokens(1000), 1);
});
