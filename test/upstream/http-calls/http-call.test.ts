// Calls that fail before they begin.

import t from 'tap';
import type { RequestEncoder } from '../../../src/http/codec/streams.js';
import { Memory } from '../../../src/io/memory.js';
import { TimingWheel } from '../../../src/io/time/timing-wheel.js';
import type { CallingThread } from '../../../src/upstream/calling-thread.js';
import type { Cluster } from '../../../src/upstream/cluster.js';
import type { PoolRequest } from '../../../src/upstream/connections/http-pool.js';
import { HttpCall } from '../../../src/upstream/http-calls/http-call.js';
import { LimitKind } from '../../../src/upstream/limits.js';
import { FakePool } from '../connections/fake-pool.js';

t.test('a call whose head cannot be written releases its connection without an event', (t) => {
  const journal: string[] = [];
  const wheel = new TimingWheel({
    nowMs: 0,
    onError: (error) => {
      throw error;
    },
  });
  const thread = { memory: new Memory(), wheel, clock: { monotonicMs: 0 } };
  const encoder = { reset: () => void journal.push('reset') } as unknown as RequestEncoder;
  const cluster = {
    thread,
    clusterOfHost() {
      return this;
    },
    maintenance: { isHit: () => false },
    pickHost: () => ({}),
    pool: () => ({ start: (request: PoolRequest) => request.onPoolReady(encoder, {} as never) }),
    stats: { increment: () => undefined },
    requestBegan: () => void journal.push('began'),
    requestEnded: () => void journal.push('ended'),
  } as unknown as Cluster;
  const request = {
    writeHead: () => {
      throw new TypeError('no such value');
    },
    body: [],
    timeoutMs: 1000,
  };
  const events = {
    onAnswer: () => void journal.push('answer'),
    onFailure: (reason: string) => void journal.push(reason),
  };
  const caller = { begin: () => thread } as unknown as CallingThread;
  t.throws(() => HttpCall.start(caller, cluster, request, events), { message: 'no such value' });
  t.strictSame(journal, ['began', 'ended', 'reset']);
  wheel.advance(2000);
  t.equal(journal.length, 3, 'its time is not waited for');
  t.end();
});

t.test('a call whose connect cannot begin leaves the queue without an event', (t) => {
  const played = new FakePool();
  const { clock, held, pool, stats, wheel } = played;
  const thread = { memory: new Memory(), wheel, clock };
  const cluster = {
    thread,
    clusterOfHost() {
      return this;
    },
    maintenance: { isHit: () => false },
    pickHost: () => ({}),
    pool: () => pool,
    stats,
  } as unknown as Cluster;
  const heard: string[] = [];
  const events = {
    onAnswer: () => void heard.push('answer'),
    onFailure: (reason: string) => void heard.push(reason),
  };
  const caller = { begin: () => thread } as unknown as CallingThread;
  const request = { writeHead: () => undefined, body: [], timeoutMs: 1000 };
  played.connectError = new Error('connect ENOBUFS');
  t.throws(() => HttpCall.start(caller, cluster, request, events), { message: 'connect ENOBUFS' });
  t.equal(held[LimitKind.PendingRequests], 0);
  t.equal(held[LimitKind.Connections], 0);
  t.equal(stats.value('upstream_rq_pending_active'), 0);
  wheel.advance(2000);
  t.same(heard, [], 'its time is not waited for');
  t.end();
});
