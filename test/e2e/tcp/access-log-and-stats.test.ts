// Observability of proxied TCP connections: one access log line each, and the stats of filter, listener and cluster.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  fileAccessLog,
  startBaton,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { openStream, startPeers } from './stream.js';

const logs = tempDir(t);
const upstream = await startPeers(t);
const format = [
  '%BYTES_RECEIVED%',
  '%BYTES_SENT%',
  '%RESPONSE_FLAGS%',
  '%UPSTREAM_CLUSTER%',
  '%UPSTREAM_HOST%',
  '%UPSTREAM_LOCAL_ADDRESS%',
  '%DOWNSTREAM_REMOTE_ADDRESS%',
  '%DOWNSTREAM_LOCAL_ADDRESS%',
  '%DURATION%',
  '%CONNECTION_ID%',
  '%STREAM_ID%',
].join('|');
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      tcpListener('logged', 0, {
        cluster: 'upstream',
        access_log: [fileAccessLog(join(logs, 'custom'), `${format}\n`)],
      }),
      tcpListener('default-format', 0, { cluster: 'upstream', access_log: [fileAccessLog(join(logs, 'default'))] }),
    ],
    clusters: [staticCluster('upstream', upstream.port)],
  }),
  args: ['--file-flush-interval-msec', '50'],
});

t.test('a line has bytes, addresses and duration of a connection', async (t) => {
  const port = await baton.listenerPort('logged');
  const client = await openStream(t, port);
  const clientPort = (client.socket.address() as { port: number }).port;
  const server = await upstream.next();
  const proxyPort = server.socket.remotePort;
  void client.write('a'.repeat(1234));
  await server.receives(1234);
  void server.write('b'.repeat(4321));
  await client.receives(4321);
  client.end();
  server.end();
  const [line] = await lines('custom', 1);
  const [received, sent, flags, cluster, host, upstreamLocal, remote, local, duration, id, stream] = line!.split('|');
  t.equal(received, '1234');
  t.equal(sent, '4321');
  t.equal(flags, '-');
  t.equal(cluster, 'upstream');
  t.equal(host, `127.0.0.1:${upstream.port}`);
  t.equal(upstreamLocal, `127.0.0.1:${proxyPort}`);
  t.equal(remote, `127.0.0.1:${clientPort}`);
  t.equal(local, `127.0.0.1:${port}`);
  t.match(duration, /^\d+$/);
  t.match(id, /^\d+$/);
  t.match(stream, /^[0-9a-f-]{36}$/);
});

t.test('each connection has one line, however it ends', async (t) => {
  const port = await baton.listenerPort('logged');
  const first = await openStream(t, port);
  await upstream.next();
  first.reset();
  await lines('custom', 2);
  await openStream(t, port);
  (await upstream.next()).reset();
  const all = await lines('custom', 3);
  // As in Envoy: a client that disconnects is not a TCP failure.
  t.equal(all[1]!.split('|')[2], '-', 'the client reset');
  t.equal(all[2]!.split('|')[2], 'UR', 'the upstream reset');
  const ids = all.map((line) => line.split('|').at(-1));
  t.equal(new Set(ids).size, 3, 'connections have unique ids');
});

t.test('the default format has dashes for HTTP values', async (t) => {
  const client = await openStream(t, await baton.listenerPort('default-format'));
  const server = await upstream.next();
  void client.write('12345');
  await server.receives(5);
  void server.write('123');
  server.end();
  await client.isClosed();
  client.end();
  const [line] = await lines('default', 1);
  t.match(
    line,
    /^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\] "- - -" 0 - 5 3 \d+ - "-" "-" "-" "-" "127\.0\.0\.1:\d+"$/,
  );
  t.match(line, `"127.0.0.1:${upstream.port}"`);
});

t.test('stats of the filter, the listener and the cluster count the same traffic', async (t) => {
  await baton.waitForStat('cluster.upstream.upstream_cx_active', 0);
  // As in Envoy, a connection is a request, which its end interrupts. This is the last thing that is counted.
  await baton.waitForStat('cluster.upstream.upstream_cx_destroy_with_active_rq', 4);
  t.equal(await baton.stat('tcp.default-format.downstream_cx_total'), 1);
  t.equal(await baton.stat('tcp.default-format.downstream_cx_rx_bytes_total'), 5);
  t.equal(await baton.stat('tcp.default-format.downstream_cx_tx_bytes_total'), 3);
  const listener = 'listener.default-format';
  t.equal(await baton.stat(`${listener}.downstream_cx_total`), 1);
  t.equal(await baton.stat(`${listener}.downstream_cx_destroy`), 1);
  t.equal(await baton.stat(`${listener}.downstream_cx_active`), 0);
  t.equal(await baton.stat(`${listener}.worker_0.downstream_cx_total`), 1);
  t.equal(await baton.stat('cluster.upstream.upstream_cx_total'), 4);
  t.equal(await baton.stat('cluster.upstream.upstream_cx_rx_bytes_total'), 4321 + 3);
  t.equal(await baton.stat('cluster.upstream.upstream_cx_tx_bytes_total'), 1234 + 5);
});

t.test('gauges follow open connections', async (t) => {
  const port = await baton.listenerPort('default-format');
  const client = await openStream(t, port);
  const server = await upstream.next();
  await baton.waitForStat('listener.default-format.downstream_cx_active', 1);
  t.equal(await baton.stat('cluster.upstream.upstream_cx_active'), 1);
  t.equal(await baton.stat('server.total_connections'), 1);
  client.end();
  server.end();
  await baton.waitForStat('listener.default-format.downstream_cx_active', 0);
  t.equal(await baton.stat('cluster.upstream.upstream_cx_active'), 0);
});

async function lines(name: string, count: number): Promise<string[]> {
  return waitFor(
    () => {
      const all = readFileSync(join(logs, name), 'utf8').split('\n').slice(0, -1);
      return all.length >= count && all;
    },
    { what: `${count} lines in the log ${name}` },
  );
}
