// Clients that hold many connections to the admin port, and the service that other clients still get.

import { readdirSync } from 'node:fs';
import t from 'tap';
import { FrameFlag, FrameType, frame, opening, requestFields } from '../../harness/http2-frames.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  httpListener,
  httpRequest,
  type RawConnection,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  waitFor,
} from '../../harness/index.js';

const upstream = await startUpstream(t, (_request, response) => void response.end('served'));

function configuration(more: Config = {}): Config {
  return bootstrap({
    listeners: [httpListener('web', 0, { route_config: routeAllTo('host') })],
    clusters: [staticCluster('host', upstream.port)],
    extra: more,
  });
}

/** What a connection sends that never completes a request. */
const IDLERS: Record<string, string | Buffer> = {
  nothing: '',
  'a partial header section': 'GET /ready HTTP/1.1\r\nHost: localhost\r\nX-Half: ',
  'a partial preface': 'PRI * HTTP/2.0\r\n\r\nSM',
  'a partial body': 'POST /logging HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nlevel',
  'a partial chunk': 'POST /logging HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nlev',
  'an expectation without a body':
    'POST /logging HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n',
  'a completed request': 'GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'the opening of HTTP/2': opening(),
  'half a head of HTTP/2': Buffer.concat([opening(), frame(FrameType.Headers, 0, 1, requestFields('/ready'))]),
  'half a body of HTTP/2': Buffer.concat([
    opening(),
    frame(FrameType.Headers, FrameFlag.EndHeaders, 1, requestFields('/logging', { ':method': 'POST' })),
  ]),
};

for (const [what, bytes] of Object.entries(IDLERS)) {
  t.test(`connections that hold ${what} do not block other clients`, async (t) => {
    const baton = await startBaton(t, { config: configuration(), args: ['--admin-max-connections', '16'] });
    const before = (await baton.stat('listener.admin.downstream_cx_evicted'))!;
    const idle = await hold(t, baton, 40, bytes);
    for (let probe = 0; probe < 5; probe++) t.equal((await baton.admin('/ready')).status, 200);
    t.ok((await baton.stat('listener.admin.downstream_cx_active'))! <= 16);
    t.ok((await baton.stat('listener.admin.downstream_cx_evicted'))! - before >= 40 - 16);
    t.equal(await baton.stat('listener.admin.downstream_cx_overflow'), 0);
    // The longest idle connections were closed first.
    await waitFor(() => idle.slice(0, 24).every(({ closed }) => closed !== 'open'));
    await baton.stop();
  });
}

t.test('a thousand partial header sections do not keep listeners from accepting', async (t) => {
  const baton = await startBaton(t, {
    config: configuration(),
    wrapper: ['sh', '-c', 'ulimit -n 1024; exec "$@"', 'sh'],
  });
  const web = await baton.listenerPort('web');
  await hold(t, baton, 1000, IDLERS['a partial header section']!);
  // These stay open, so each takes two descriptors.
  const clients = await Promise.all(Array.from({ length: 200 }, () => connectRaw(t, web)));
  for (const client of clients) client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  for (const client of clients) await client.readUntil('served');
  t.equal((await baton.admin('/ready')).status, 200);
  t.equal(await baton.stat('listener.web.downstream_cx_overflow'), 0);
  t.notMatch(baton.stderr, 'no more connections are accepted');
  await baton.stop();
});

t.test('when all connections are busy the newest is refused, and endless responses continue', async (t) => {
  const sink = {
    name: 'hystrix',
    typed_config: { '@type': 'type.googleapis.com/envoy.config.metrics.v3.HystrixSink' },
  };
  const baton = await startBaton(t, {
    config: configuration({ stats_flush_interval: '0.2s', stats_sinks: [sink] }),
    args: ['--admin-max-connections', '8'],
  });
  const streams = await hold(t, baton, 7, 'GET /hystrix_event_stream HTTP/1.1\r\nHost: localhost\r\n\r\n');
  for (const stream of streams) await stream.readUntil('data:');
  const idle = await connectRaw(t, baton.adminPort);
  // It makes room, as the one before it does each time.
  for (let probe = 0; probe < 3; probe++) t.equal((await baton.admin('/ready')).status, 200);
  await waitFor(() => idle.closed !== 'open');
  const last = await hold(t, baton, 1, 'GET /hystrix_event_stream HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await last[0]!.readUntil('data:');
  await t.rejects(httpRequest(baton.adminPort, '/ready'));
  for (const stream of [...streams, ...last]) await stream.readUntil('data:');
  t.ok(streams.every(({ closed }) => closed === 'open'));
  streams[0]!.destroy();
  await waitFor(async () => (await baton.admin('/ready')).status === 200);
  t.ok((await baton.stat('listener.admin.downstream_cx_overflow'))! >= 1);
  await baton.stop();
});

t.test('a refused client holds no descriptor, whether it closes or stays', async (t) => {
  const baton = await startBaton(t, { config: configuration() });
  const descriptors = () => readdirSync(`/proc/${baton.pid}/fd`).length;
  t.equal((await baton.admin('/ready')).status, 200);
  const before = descriptors();
  // Further bytes are never read as a request.
  const refused = await hold(t, baton, 20, `CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n${'x'.repeat(300_000)}`);
  for (const connection of refused) await connection.readUntil('403');
  for (const connection of refused.slice(10)) connection.destroy();
  await waitFor(() => descriptors() <= before, { what: 'all descriptors to be free', deadlineMs: 10_000 });
  await baton.stop();
});

/** Opens connections one after the other, so that their order by age is known, and sends the bytes on each. */
async function hold(t: Teardown, baton: BatonProcess, count: number, bytes: string | Buffer): Promise<RawConnection[]> {
  const connections: RawConnection[] = [];
  for (let index = 0; index < count; index++) {
    const connection = await connectRaw(t, baton.adminPort);
    if (bytes.length > 0) connection.write(bytes);
    connections.push(connection);
  }
  return connections;
}
