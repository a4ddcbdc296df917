// Connecting to hosts: timeouts, source addresses, and the responses to clients when it fails.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  freePort,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startBlackHole,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';

const hole = await startBlackHole(t);
const closed = await freePort();
const upstream = await startUpstream(t, ({ socket }, response) => response.end(`from ${socket.remoteAddress}`));
const access = join(tempDir(t), 'access');
const reasons = join(tempDir(t), 'reasons');
const FAILED = 'upstream connect error or disconnect/reset before headers. reset reason: remote connection failure';

const clusters = [
  staticCluster('hole', hole, { connect_timeout: '0.2s' }),
  staticCluster('patient-hole', hole, { connect_timeout: '3s' }),
  staticCluster('closed', closed),
  staticCluster('absent', { pipe: { path: join(tempDir(t), 'absent') } }),
  staticCluster('hole-and-upstream', [hole, upstream.port], { connect_timeout: '0.2s' }),
  staticCluster('from-5', upstream.port, { upstream_bind_config: source('127.0.0.5') }),
  staticCluster('from-ipv6', upstream.port, { type: 'STRICT_DNS', upstream_bind_config: source('::1') }),
  staticCluster('from-nowhere', upstream.port, { upstream_bind_config: source('203.0.113.9') }),
];
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      ...clusters.map(({ name }) => httpListener(name as string, 0, { route_config: routeAllTo(name as string) })),
      httpListener('retried', 0, {
        route_config: routeAllTo('hole-and-upstream', {
          retry_policy: { retry_on: 'connect-failure', num_retries: 3 },
        }),
      }),
      tcpListener('tcp-hole', 0, {
        cluster: 'hole',
        access_log: [fileAccessLog(access, '%RESPONSE_FLAGS% %BYTES_SENT%\n')],
      }),
      ...['closed', 'absent'].map((cluster) =>
        tcpListener(`tcp-${cluster}`, 0, {
          cluster,
          access_log: [fileAccessLog(reasons, `${cluster} %UPSTREAM_TRANSPORT_FAILURE_REASON%\n`)],
        }),
      ),
      tcpListener('tcp-from-5', 0, { cluster: 'from-5' }),
      tcpListener('tcp-from-nowhere', 0, { cluster: 'from-nowhere' }),
    ],
    clusters,
  }),
  args: ['--file-flush-interval-msec', '50'],
});

t.test('connect_timeout ends a connect without an answer: HTTP', async (t) => {
  const { status, body } = await httpRequest(await baton.listenerPort('hole'), '/');
  t.equal(status, 503);
  t.match(body, /^upstream connect error or disconnect\/reset before headers\. reset reason: connection timeout/);
  t.equal(await baton.stat('cluster.hole.upstream_cx_connect_timeout'), 1);
  t.equal(await baton.stat('cluster.hole.upstream_cx_connect_fail'), 1);
  t.equal(await baton.stat('cluster.hole.upstream_cx_active'), 0);
  t.equal(await baton.stat('cluster.hole.upstream_rq_pending_active'), 0);
});

t.test('connect_timeout ends a connect without an answer: TCP', async (t) => {
  const client = await connectRaw(t, await baton.listenerPort('tcp-hole'));
  t.same(await client.readToEnd(), { text: '', closed: 'end' });
  await baton.waitForStat('cluster.hole.upstream_cx_connect_timeout', 2);
  const line = await waitFor(() => readFileSync(access, 'utf8'), { what: 'the log line' });
  t.equal(line, 'UF,URX 0\n');
});

t.test('a retry after a connect timeout reaches another host', async (t) => {
  const port = await baton.listenerPort('retried');
  for (let index = 0; index < 3; index++) t.equal((await httpRequest(port, '/')).status, 200);
  t.ok((await baton.stat('cluster.hole-and-upstream.upstream_cx_connect_timeout'))! > 0);
});

t.test('the reason of a failed connect is not disclosed to clients', async (t) => {
  const { status, body } = await httpRequest(await baton.listenerPort('closed'), '/');
  t.equal(status, 503);
  t.equal(body, FAILED);
  t.equal(await baton.stat('cluster.closed.upstream_cx_connect_fail'), 1);
  t.equal(await baton.stat('cluster.closed.upstream_cx_connect_timeout'), 0);
});

t.test('a connect that fails before it starts has its own details', async (t) => {
  const { status, body } = await httpRequest(await baton.listenerPort('absent'), '/');
  t.equal(status, 503);
  t.equal(body, FAILED);
  t.equal(await baton.stat('cluster.absent.upstream_cx_connect_fail'), 1);
  for (const name of ['tcp-closed', 'tcp-absent']) {
    await (await connectRaw(t, await baton.listenerPort(name))).readToEnd();
  }
  const lines = await waitFor(() => {
    const all = readFileSync(reasons, 'utf8').split('\n');
    return all.length === 3 && all.sort();
  });
  t.same(lines, [
    '',
    'absent immediate_connect_error:_No_such_file_or_directory',
    'closed delayed_connect_error:_Connection_refused',
  ]);
});

t.test('connections come from source_address', async (t) => {
  t.equal((await httpRequest(await baton.listenerPort('from-5'), '/')).body, 'from 127.0.0.5');
  t.equal((await httpRequest(await baton.listenerPort('tcp-from-5'), '/')).body, 'from 127.0.0.5');
});

t.test('a source_address that the machine does not have fails the connect, not the server', async (t) => {
  const { status, body } = await httpRequest(await baton.listenerPort('from-nowhere'), '/');
  t.equal(status, 503);
  t.match(body, /reset reason: local connection failure$/);
  const client = await connectRaw(t, await baton.listenerPort('tcp-from-nowhere'));
  t.not((await client.readToEnd()).closed, 'open');
  t.notMatch(baton.stderr, /internal error|\[critical\]/);
  t.equal(await baton.stat('cluster.from-nowhere.upstream_cx_active'), 0);
  t.equal(await baton.stat('cluster.from-nowhere.bind_errors'), 2, 'over HTTP and over TCP');
  t.equal(await baton.stat('cluster.from-nowhere.upstream_cx_destroy_local'), 2);
  t.equal(await baton.stat('cluster.from-5.bind_errors'), 0);
  t.equal((await httpRequest(await baton.listenerPort('from-5'), '/')).status, 200);
});

t.test('a source_address of another family than the host counts in bind_errors', async (t) => {
  t.equal((await httpRequest(await baton.listenerPort('from-ipv6'), '/')).status, 503);
  t.equal(await baton.stat('cluster.from-ipv6.bind_errors'), 1);
});

t.test('a client that disconnects while Baton connects leaves nothing behind', async (t) => {
  const client = await connectRaw(t, await baton.listenerPort('patient-hole'));
  client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await baton.waitForStat('cluster.patient-hole.upstream_rq_pending_active', 1);
  t.equal(await baton.stat('cluster.patient-hole.upstream_rq_cancelled'), 0);
  client.reset();
  await baton.waitForStats({
    'cluster.patient-hole.upstream_rq_cancelled': 1,
    'cluster.patient-hole.upstream_rq_pending_active': 0,
    'cluster.patient-hole.upstream_rq_pending_failure_eject': 0,
    'cluster.patient-hole.upstream_cx_active': 0,
    'http.patient-hole.downstream_cx_active': 0,
  });
});

function source(address: string): Config {
  return { source_address: { address, port_value: 0 } };
}
