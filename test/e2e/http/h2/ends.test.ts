// How connections of HTTP/2 clients end: drained, idle, too old, with a late head, without an answer to a ping.

import type { ClientHttp2Session } from 'node:http2';
import t from 'tap';
import { FrameFlag, FrameType, frame, opening, request } from '../../harness/http2-frames.js';
import { connectRaw, startUpstream, staticCluster, waitFor } from '../../harness/index.js';
import { answering, managerOf, routeTo, startProxy } from '../proxy.js';
import { exchange, openSession } from './http2-client.js';

const waiting: (() => void)[] = [];
const upstream = await startUpstream(t, (_incoming, outgoing) => void waiting.push(() => outgoing.end('late')));
const routes = [answering({ path: '/' }, 'ok'), routeTo({ path: '/wait' }, 'host', { timeout: '0s' })];
const proxy = await startProxy(t, {
  listeners: {
    drained: managerOf(routes, { drain_timeout: '0.3s' }),
    idle: managerOf(routes, { drain_timeout: '0.2s', common_http_protocol_options: { idle_timeout: '0.3s' } }),
    old: managerOf(routes, {
      drain_timeout: '0.2s',
      common_http_protocol_options: { max_connection_duration: '0.3s', idle_timeout: '0s' },
    }),
    limited: managerOf(routes, {
      drain_timeout: '0.2s',
      common_http_protocol_options: { max_requests_per_connection: 2 },
    }),
    late: managerOf(routes, { request_headers_timeout: '0.3s' }),
    pinging: managerOf(routes, {
      http2_protocol_options: { connection_keepalive: { interval: '0.1s', timeout: '0.3s' } },
    }),
  },
  clusters: [staticCluster('host', upstream.port)],
  args: ['-l', 'warning', '--drain-time-s', '1', '--concurrency', '1'],
});

interface Watched {
  readonly session: ClientHttp2Session;
  /** Last stream of each GOAWAY. */
  readonly goAways: number[];
}

function watch(listener: string): Watched {
  const session = openSession(t, proxy.ports[listener]!);
  const goAways: number[] = [];
  session.on('goaway', (_code, lastStream) => goAways.push(lastStream));
  return { session, goAways };
}

const ANY = 0x7fffffff;

t.test('an idle connection is announced to end, and ends', async (t) => {
  const { session, goAways } = watch('idle');
  t.equal((await exchange(session, '/')).body, 'ok');
  await waitFor(() => session.destroyed, { what: 'the end' });
  t.equal(goAways[0], ANY);
  await proxy.baton.waitForStat('http.idle.downstream_cx_idle_timeout', 1);
});

t.test('a client that stays after the announcement is disconnected after drain_timeout', async (t) => {
  const client = await connectRaw(t, proxy.ports['idle']!);
  client.write(Buffer.concat([opening(), request(1, '/')]));
  await waitFor(() => client.closed !== 'open', { what: 'the end' });
  t.equal(client.closed, 'end');
  t.same(lastStreams(client.received), [ANY, 1]);
});

/** Returns the last stream of each GOAWAY. */
function lastStreams(received: string): number[] {
  const bytes = Buffer.from(received, 'latin1');
  const found: number[] = [];
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    if (bytes[at + 3] === FrameType.GoAway) found.push(bytes.readUInt32BE(at + 9));
  }
  return found;
}

t.test('pings keep no connection open', async (t) => {
  const { session } = watch('idle');
  t.equal((await exchange(session, '/')).body, 'ok');
  const timer = setInterval(() => !session.destroyed && session.ping(() => {}), 50);
  t.teardown(() => clearInterval(timer));
  await waitFor(() => session.destroyed, { what: 'the end' });
});

t.test('a connection that is too old finishes its requests', async (t) => {
  const { session, goAways } = watch('old');
  const late = exchange(session, '/wait');
  await waitFor(() => goAways.length === 2, { what: 'both GOAWAY' });
  t.same(goAways, [ANY, 1]);
  waiting.pop()!();
  t.equal((await late).body, 'late');
  await waitFor(() => session.destroyed, { what: 'the end' });
  await proxy.baton.waitForStat('http.old.downstream_cx_max_duration_reached', 1);
});

t.test('a connection with as many requests as allowed ends', async (t) => {
  const { session, goAways } = watch('limited');
  await exchange(session, '/');
  await exchange(session, '/');
  await waitFor(() => session.destroyed, { what: 'the end' });
  t.equal(goAways[0], ANY);
  await proxy.baton.waitForStat('http.limited.downstream_cx_max_requests_reached', 1);
});

t.test('a client that does not send the rest of a head is refused', async (t) => {
  const client = await connectRaw(t, proxy.ports['late']!);
  client.write(opening());
  client.write(frame(FrameType.Headers, FrameFlag.EndStream, 1, Buffer.from([0x82])));
  await waitFor(() => client.closed !== 'open', { what: 'the end' });
  await proxy.baton.waitForStat('http.late.downstream_rq_header_timeout', 1);
  t.ok(client.received.includes('request header timeout'));
});

t.test('a silent connection without requests has no timeout of heads', async (t) => {
  const { session, goAways } = watch('late');
  await exchange(session, '/');
  await new Promise((resolve) => session.ping(resolve));
  const before = await proxy.baton.stats('http.late.');
  await waitFor(async () => (await proxy.baton.stats('server.'))['uptime']! >= 0, { what: 'an answer' });
  t.equal((await exchange(session, '/')).body, 'ok');
  t.same(goAways, []);
  t.equal(before['downstream_rq_header_timeout'], 1);
});

t.test('a client that answers pings is kept, another one is cut off', async (t) => {
  const { session } = watch('pinging');
  let pings = 0;
  session.on('ping', () => pings++);
  await exchange(session, '/');
  const silent = await connectRaw(t, proxy.ports['pinging']!);
  silent.write(opening());
  await waitFor(() => silent.closed !== 'open', { what: 'the end of the silent one' });
  await waitFor(() => pings >= 3, { what: 'pings' });
  t.notOk(session.destroyed);
  await proxy.baton.waitForStat('http2.keepalive_timeout', 1);
});

t.test('connections of a draining listener end in two steps', async (t) => {
  const { session, goAways } = watch('drained');
  await exchange(session, '/');
  await proxy.baton.admin('/drain_listeners?graceful', { method: 'POST' });
  await waitFor(
    async () => {
      if (!session.closed && !session.destroyed && goAways.length === 0) await exchange(session, '/');
      return session.destroyed;
    },
    { what: 'the end' },
  );
  t.equal(goAways[0], ANY);
});
