// A worker's connections to one host, over a simulated transport.

import t from 'tap';
import { ConnectStep } from '../../../src/io/shim.js';
import type { ConnectionHandler } from '../../../src/io/transport/connection-handler.js';
import { LimitKind } from '../../../src/upstream/limits.js';
import { FakePool, NotedRequest } from './fake-pool.js';

t.test('closeIdle() closes exactly the connections that have been idle for that time', (t) => {
  const played = new FakePool();
  const { pool, clock, handlers, stats, hostStats, held } = played;
  const given = [0, 50, 900, 1000].map((atMs) => {
    const request = new NotedRequest();
    pool.start(request);
    return { atMs, request, id: played.lastId };
  });
  const last = new NotedRequest();
  pool.start(last);
  const connecting = played.lastId;
  for (const { request } of given) pool.cancel(request);
  for (const { atMs, id } of given) {
    clock.monotonicMs = atMs;
    handlers.get(id)!.onConnected();
  }
  t.equal(last.outcome, 'ready', 'on the first of them');
  t.same([...handlers.keys()], [1, 2, 3, 4, connecting]);

  clock.monotonicMs = 1060;
  pool.closeIdle(1000);
  t.same([...handlers.keys()], [1, 3, 4, connecting]);
  clock.monotonicMs = 1900;
  pool.closeIdle(1000);
  t.same([...handlers.keys()], [1, 4, connecting], 'busy and pending connections stay');
  clock.monotonicMs = 5000;
  pool.closeIdle(1000);
  t.same([...handlers.keys()], [1, connecting]);
  t.equal(held[LimitKind.Connections], 2);
  t.equal(hostStats.value('cx_active'), 2);
  t.same(
    ['upstream_cx_active', 'upstream_cx_destroy', 'upstream_cx_destroy_local'].map((name) => stats.value(name)),
    [2, 3, 3],
  );
  t.equal(stats.value('upstream_cx_destroy_with_active_rq'), 0);
  t.equal(stats.value('upstream_cx_idle_timeout'), 0);
  const next = new NotedRequest();
  pool.start(next);
  t.equal(next.outcome, 'waits', 'none of them is reused');
  t.end();
});

t.test('a failed connect fails one request while other connects are pending', (t) => {
  const { pool, handlers, stats, held } = new FakePool();
  const requests = [new NotedRequest(), new NotedRequest(), new NotedRequest()];
  for (const request of requests) pool.start(request);
  t.same([...handlers.keys()], [1, 2, 3]);
  handlers.get(1)!.onReset(111, ConnectStep.Later);
  t.same(
    requests.map(({ outcome }) => outcome),
    ['failed', 'waits', 'waits'],
  );
  handlers.get(2)!.onConnected();
  handlers.get(3)!.onConnected();
  t.same(
    requests.map(({ outcome }) => outcome),
    ['failed', 'ready', 'ready'],
  );
  t.equal(stats.value('upstream_rq_pending_failure_eject'), 1);
  t.equal(held[LimitKind.PendingRequests], 0);
  t.equal(held[LimitKind.Connections], 2);
  t.end();
});

t.test('a connection to a removed host serves the queued request, then closes', (t) => {
  const { pool, handlers } = new FakePool();
  const [staying, leaving] = [new NotedRequest(), new NotedRequest()];
  for (const request of [staying, leaving]) pool.start(request);
  pool.cancel(leaving);
  pool.drain();
  t.same([...handlers.keys()], [1, 2], 'they are being made');
  handlers.get(1)!.onConnected();
  t.equal(staying.outcome, 'ready');
  handlers.get(2)!.onConnected();
  t.same([...handlers.keys()], [1], 'nobody needs the second');
  t.end();
});

t.test('a pool reports that it is empty when its only request is refused', (t) => {
  const played = new FakePool();
  played.exhausted = LimitKind.PendingRequests;
  const request = new NotedRequest();
  played.pool.start(request);
  t.equal(request.outcome, 'failed');
  t.equal(played.emptied, 1, 'clients may make any number of pools');
  t.end();
});

/** A header of the PROXY protocol, then TLS. */
const PROXIED_TLS = {
  namesClient: true,
  proxyOf: () => undefined,
  opening: () => Buffer.from('PROXY UNKNOWN\r\n'),
  tls: { begin: () => ({ failed: () => '' }) },
};

for (const [what, act] of [
  ['data', (handler) => handler.onData(0, 1)],
  ['the end', (handler) => handler.onEnd()],
  ['an exception', (handler) => handler.onFault(new Error('a defect'))],
] as readonly (readonly [string, (handler: ConnectionHandler) => void])[]) {
  t.test(`${what} between the header of the PROXY protocol and TLS fails the connect`, (t) => {
    const fake = new FakePool();
    fake.hostTransport = PROXIED_TLS;
    const { handlers, held, pool, stats } = fake;
    const requests = [new NotedRequest(), new NotedRequest()];
    pool.start(requests[0]!);
    handlers.get(1)!.onConnected();
    handlers.get(1)!.onBlocked();
    handlers.get(1)!.onDrained();
    t.equal(requests[0]!.outcome, 'waits');
    act(handlers.get(1)!);
    t.equal(requests[0]!.outcome, 'failed');
    t.ok(pool.isEmpty);
    t.equal(held[LimitKind.Connections], 0);
    t.equal(stats.value('upstream_cx_connect_fail'), 1);
    pool.start(requests[1]!);
    t.ok(handlers.has(2), 'the next request gets a connection of its own');
    t.end();
  });
}

t.test('a connect in advance that cannot begin leaves the requests alone', (t) => {
  const played = new FakePool(3);
  const { handlers, held, pool } = played;
  const [first, second, third] = [new NotedRequest(), new NotedRequest(), new NotedRequest()];
  pool.start(first);
  t.same([...handlers.keys()], [1, 2, 3]);
  for (const id of [1, 2]) handlers.get(id)!.onConnected();
  played.connectError = new Error('no room for connections');
  pool.start(second);
  t.equal(second.outcome, 'ready');
  pool.start(third);
  t.equal(third.outcome, 'waits', 'for the connection that is being made');
  handlers.get(3)!.onConnected();
  t.equal(third.outcome, 'ready');
  t.equal(held[LimitKind.Connections], 3);
  t.equal(held[LimitKind.PendingRequests], 0);
  t.end();
});
