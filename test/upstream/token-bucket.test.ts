// A token bucket: its burst and its long-term rate, on a simulated clock.

import t from 'tap';
import { OwnTokenBucket, TokenRate } from '../../src/upstream/token-bucket.js';

/** Returns how many of `count` requests at this time get a token. */
function taken(bucket: OwnTokenBucket, nowMs: number, count: number): number {
  let tokens = 0;
  for (let i = 0; i < count; i++) if (bucket.take(nowMs)) tokens++;
  return tokens;
}

t.test('a bucket is full at first, and fills evenly up to its size', async (t) => {
  const bucket = new OwnTokenBucket(new TokenRate({ maxTokens: 10, tokensPerFill: 5, fillIntervalMs: 1000 }));
  t.equal(bucket.tokens(1e6), 10);
  t.equal(taken(bucket, 1e6, 20), 10);
  t.equal(bucket.tokens(1e6), 0);
  t.equal(taken(bucket, 1e6 + 199, 1), 0, 'a token takes 200 ms');
  t.equal(taken(bucket, 1e6 + 200, 5), 1);
  t.equal(taken(bucket, 1e6 + 1000, 9), 4);
  t.equal(taken(bucket, 1e6 + 60_000, 20), 10, 'no more than it holds');
});

t.test('msToToken() returns the time until a token is available', async (t) => {
  const bucket = new OwnTokenBucket(new TokenRate({ maxTokens: 2, tokensPerFill: 1, fillIntervalMs: 60_000 }));
  t.equal(bucket.msToToken(5), 0);
  bucket.take(5);
  t.equal(bucket.msToToken(5), 0);
  bucket.take(5);
  t.equal(bucket.msToToken(5), 60_000);
  t.equal(bucket.msToToken(20_005), 40_000);
  t.equal(bucket.msToToken(60_005), 0);
});

t.test('fractional times lose no token', async (t) => {
  for (const [maxTokens, fillIntervalMs] of [
    [3, 100],
    [7, 50],
    [1000, 50],
    [100_000, 1000],
  ] as const) {
    const bucket = new OwnTokenBucket(new TokenRate({ maxTokens, tokensPerFill: maxTokens, fillIntervalMs }));
    for (let nowMs = 1e9 / 7, round = 0; round < 3; round++, nowMs += fillIntervalMs) {
      t.equal(bucket.tokens(nowMs), maxTokens);
      t.equal(taken(bucket, nowMs, maxTokens + 5), maxTokens);
    }
  }
});

t.test('rounding errors do not hide an available token', async (t) => {
  for (const tokensPerFill of [3, 7, 11, 13, 1000]) {
    const bucket = new OwnTokenBucket(new TokenRate({ maxTokens: tokensPerFill, tokensPerFill, fillIntervalMs: 100 }));
    for (let nowMs = 1e9 / 7, round = 0; round < 20; round++) {
      taken(bucket, nowMs, tokensPerFill);
      t.ok(bucket.msToToken(nowMs) > 0);
      nowMs += 100 / tokensPerFill;
      t.same([bucket.tokens(nowMs), bucket.msToToken(nowMs), bucket.take(nowMs)], [1, 0, true]);
    }
  }
});

t.test('a thread whose clock is slightly behind takes no missing token', async (t) => {
  const bucket = new OwnTokenBucket(new TokenRate({ maxTokens: 5, tokensPerFill: 1, fillIntervalMs: 100 }));
  t.equal(taken(bucket, 1000, 9), 5);
  t.equal(taken(bucket, 998, 9), 0);
  t.equal(bucket.tokens(998), 0);
});
