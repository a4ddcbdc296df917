// The times of HTTP/2 pings: interval, jitter, answers, and pings ahead of a request.

import t from 'tap';
import { Random } from '../../../src/common/random.js';
import { DEFAULT_HTTP2_OPTIONS } from '../../../src/http/codec/options.js';
import { Keepalive } from '../../../src/http/h2/keepalive.js';
import { http2Options } from '../../../src/http/h2/options.js';

const LIMITS = { maxHeadBytes: 1, maxHeaders: 1, flushTimeoutMs: 0, underscores: 'ALLOW' } as const;

t.test('pings are spread over the interval and its jitter', (t) => {
  const options = http2Options(
    { connection_keepalive: { interval: '1s', timeout: '0.2s', interval_jitter: { value: 50 } } },
    LIMITS,
  );
  const random = new Random(1);
  const delays = Array.from({ length: 200 }, () => new Keepalive(options, random).check(5000));
  t.ok(Math.min(...delays) >= 1000 && Math.min(...delays) < 1020);
  t.ok(Math.max(...delays) < 1500 && Math.max(...delays) > 1480);
  const keepalive = new Keepalive(options, random);
  const first = keepalive.check(5000);
  keepalive.check(5000 + first);
  t.ok(keepalive.isPingDue);
  keepalive.answered();
  t.not(keepalive.check(5000 + first), first, 'each interval has a jitter of its own');
  t.end();
});

t.test('the jitter is 15 % by default, and 0 turns it off', (t) => {
  const delay = (percent?: number) => {
    const jitter = percent === undefined ? {} : { interval_jitter: { value: percent } };
    const options = http2Options({ connection_keepalive: { interval: '1s', timeout: '0.2s', ...jitter } }, LIMITS);
    return Array.from({ length: 200 }, (_, seed) => new Keepalive(options, new Random(seed)).check(5000));
  };
  t.ok(Math.max(...delay()) < 1150 && Math.max(...delay()) > 1140);
  t.same(new Set(delay(0)), new Set([1000]));
  t.end();
});

t.test('a ping beside a request has the same timeout, and is not repeated before its answer', (t) => {
  const keepalive = new Keepalive(
    { ...DEFAULT_HTTP2_OPTIONS, keepaliveTimeoutMs: 200, keepaliveIdleMs: 50 },
    new Random(1),
  );
  t.equal(keepalive.check(5000), Number.POSITIVE_INFINITY);
  t.ok(keepalive.request());
  t.notOk(keepalive.request());
  t.equal(keepalive.check(6000), 200);
  t.ok(keepalive.isPingDue);
  t.notOk(keepalive.request());
  t.equal(keepalive.check(6100), 100);
  keepalive.answered();
  t.equal(keepalive.check(6300), Number.POSITIVE_INFINITY);
  t.notOk(keepalive.isPeerLost);
  t.ok(keepalive.request());
  keepalive.check(6400);
  keepalive.check(6600);
  t.ok(keepalive.isPeerLost);
  t.end();
});
