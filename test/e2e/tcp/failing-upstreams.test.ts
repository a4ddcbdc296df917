// What a client of a TCP proxy sees when its upstream is unreachable, and how often Baton attempts to connect.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import {
  bootstrap,
  fileAccessLog,
  freePort,
  startBaton,
  startBlackHole,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { openStream, startPeers } from './stream.js';

const CLUSTER = 'envoy.config.cluster.v3.Cluster';

const closed = await freePort();
const upstream = await startPeers(t);
const logs = tempDir(t);
const clusters = new ResourceFile(logs, 'clusters');
clusters.write(CLUSTER, staticCluster('leaving', upstream.port));

const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      tcpListener('refused', 0, { cluster: 'refused', access_log: [logOf('refused')] }),
      tcpListener('thrice', 0, { cluster: 'thrice', max_connect_attempts: 3, access_log: [logOf('thrice')] }),
      tcpListener('second-chance', 0, { cluster: 'half', max_connect_attempts: 2 }),
      tcpListener('deaf', 0, { cluster: 'deaf' }),
      tcpListener('empty', 0, { cluster: 'empty', access_log: [logOf('empty')] }),
      tcpListener('limited', 0, { cluster: 'limited', access_log: [logOf('limited')] }),
      tcpListener('waiting', 0, { cluster: 'waiting', access_log: [logOf('waiting')] }),
      tcpListener('one-by-one', 0, { cluster: 'one-by-one' }),
      tcpListener('leaving', 0, { cluster: 'leaving', access_log: [logOf('leaving')] }),
    ],
    clusters: [
      staticCluster('refused', closed),
      staticCluster('thrice', closed),
      staticCluster('half', [closed, upstream.port]),
      staticCluster('deaf', await startBlackHole(t), { connect_timeout: '0.25s' }),
      staticCluster('empty', []),
      staticCluster('limited', upstream.port, { circuit_breakers: { thresholds: [{ max_connections: 2 }] } }),
      staticCluster('waiting', await startBlackHole(t), {
        connect_timeout: '60s',
        circuit_breakers: { thresholds: [{ max_pending_requests: 2, max_connections: 4, track_remaining: true }] },
      }),
      staticCluster('one-by-one', upstream.port, { circuit_breakers: { thresholds: [{ max_pending_requests: 1 }] } }),
    ],
    extra: { dynamic_resources: { cds_config: clusters.source } },
  }),
  args: ['--concurrency', '2', '--file-flush-interval-msec', '50'],
});

t.test('a refused connect closes the client without a byte', async (t) => {
  const client = await openStream(t, await baton.listenerPort('refused'));
  t.equal(await client.isClosed(), 'end');
  t.equal(client.length, 0);
  t.match(await logLine('refused'), /^UF,URX 127\.0\.0\.1:\d+ \S*[Cc]onnection_refused$/);
  await baton.waitForStat('cluster.refused.upstream_cx_connect_fail', 1);
  t.equal(await baton.stat('cluster.refused.upstream_cx_active'), 0);
  t.same(await endsOf('refused'), { all: 1, local: 0, remote: 1 }, 'closed by the host');
});

t.test('a connect timeout closes the client', async (t) => {
  const client = await openStream(t, await baton.listenerPort('deaf'));
  t.equal(await client.isClosed(), 'end');
  t.same(await endsOf('deaf'), { all: 1, local: 1, remote: 0 }, 'closed locally');
});

t.test('a client that has already sent bytes is closed too', async (t) => {
  const client = await openStream(t, await baton.listenerPort('refused'));
  client.socket.write('hello');
  t.not(await client.isClosed(), 'open');
  t.equal(client.length, 0);
});

t.test('max_connect_attempts limits the attempts', async (t) => {
  const client = await openStream(t, await baton.listenerPort('thrice'));
  t.equal(await client.isClosed(), 'end');
  t.match(await logLine('thrice'), /^UF,URX /);
  await baton.waitForStat('cluster.thrice.upstream_cx_connect_fail', 3);
  t.equal(await baton.stat('cluster.thrice.upstream_cx_connect_attempts_exceeded'), 1);
  t.equal(await baton.stat('cluster.thrice.upstream_rq_pending_failure_eject'), 3);
  t.equal(await baton.stat('cluster.thrice.upstream_rq_cancelled'), 0);
});

t.test('a second attempt uses another host', async (t) => {
  const port = await baton.listenerPort('second-chance');
  for (let index = 0; index < 10; index++) {
    const client = await openStream(t, port);
    const server = await upstream.next();
    void client.write('ping');
    await server.receives(4);
    void server.write('pong');
    await client.receives(4);
    client.end();
    server.end();
  }
  t.equal(await baton.stat('cluster.half.upstream_cx_connect_attempts_exceeded'), 0);
  t.ok((await baton.stat('cluster.half.upstream_cx_connect_fail'))! > 0, 'the closed port was tried');
});

t.test('a cluster without hosts closes the client', async (t) => {
  const client = await openStream(t, await baton.listenerPort('empty'));
  t.equal(await client.isClosed(), 'end');
  t.match(await logLine('empty'), /^UH /);
  await baton.waitForStat('cluster.empty.upstream_cx_none_healthy', 1);
});

t.test('a removed cluster closes the client', async (t) => {
  const port = await baton.listenerPort('leaving');
  await openStream(t, port);
  await upstream.next();
  clusters.write(CLUSTER);
  await baton.waitForStat('cluster_manager.cluster_removed', 1);
  t.equal(await baton.stat('tcp.leaving.downstream_cx_no_route'), 0);
  const client = await openStream(t, port);
  t.equal(await client.isClosed(), 'end');
  await baton.waitForStat('tcp.leaving.downstream_cx_no_route', 1);
  const flags = () => readFileSync(join(logs, 'leaving'), 'utf8').split('\n');
  await waitFor(() => flags().includes('NC - -'), { what: 'the log line' });
});

t.test('max_connections applies to all workers together, and closed connections free it', async (t) => {
  const port = await baton.listenerPort('limited');
  const first = await openStream(t, port);
  const second = await openStream(t, port);
  const servers = [await upstream.next(), await upstream.next()];
  // Enough for each worker to refuse some.
  const refused = await Promise.all(Array.from({ length: 12 }, () => openStream(t, port)));
  for (const client of refused) t.equal(await client.isClosed(), 'end');
  t.equal(await logLine('limited'), 'UO - -', 'no host was involved');
  t.equal(first.closed, 'open');
  t.equal(second.closed, 'open');
  await baton.waitForStat('cluster.limited.upstream_cx_overflow', refused.length);
  t.equal(await baton.stat('cluster.limited.circuit_breakers.default.cx_open'), 1);

  first.end();
  for (const server of servers) server.end();
  await baton.waitForStat('cluster.limited.upstream_cx_active', 1);
  t.equal(await baton.stat('cluster.limited.circuit_breakers.default.cx_open'), 0);
  const third = await openStream(t, port);
  const server = await upstream.next();
  void server.write('served');
  await third.receives(6);
});

t.test('max_pending_requests limits the connections being established, not the established ones', async (t) => {
  const port = await baton.listenerPort('waiting');
  const waiting = [await openStream(t, port), await openStream(t, port)];
  await baton.waitForStat('cluster.waiting.upstream_rq_pending_active', 2);
  t.equal(await baton.stat('cluster.waiting.circuit_breakers.default.rq_pending_open'), 1);
  const refused = await openStream(t, port);
  t.equal(await refused.isClosed(), 'end');
  t.equal(await logLine('waiting'), 'UO - -');
  t.equal(await baton.stat('cluster.waiting.upstream_rq_pending_overflow'), 1);
  t.equal(waiting.filter(({ closed }) => closed !== 'open').length, 0);
  for (const client of waiting) client.reset();
  await baton.waitForStats({
    'cluster.waiting.upstream_rq_pending_active': 0,
    'cluster.waiting.circuit_breakers.default.rq_pending_open': 0,
    'cluster.waiting.circuit_breakers.default.remaining_cx': 4,
    'cluster.waiting.upstream_rq_cancelled': 2,
    'cluster.waiting.upstream_rq_pending_failure_eject': 0,
    'cluster.waiting.upstream_cx_connect_fail': 2,
    'cluster.waiting.upstream_cx_destroy_local': 2,
  });

  for (let count = 1; count <= 3; count++) {
    await openStream(t, await baton.listenerPort('one-by-one'));
    await upstream.next();
    await baton.waitForStat('cluster.one-by-one.upstream_rq_active', count);
  }
  t.equal(await baton.stat('cluster.one-by-one.upstream_rq_pending_total'), 3);
});

/** Returns how connections to the hosts of a cluster were closed. */
async function endsOf(cluster: string): Promise<Record<string, number | undefined>> {
  const count = (name: string) => baton.stat(`cluster.${cluster}.upstream_cx_destroy${name}`);
  return { all: await count(''), local: await count('_local'), remote: await count('_remote') };
}

function logOf(name: string) {
  return fileAccessLog(join(logs, name), '%RESPONSE_FLAGS% %UPSTREAM_HOST% %UPSTREAM_TRANSPORT_FAILURE_REASON%\n');
}

/** Returns the first line of an access log. */
async function logLine(name: string): Promise<string> {
  const text = await waitFor(() => readFileSync(join(logs, name), 'utf8'), { what: `a line in the log ${name}` });
  return text.slice(0, text.indexOf('\n'));
}
