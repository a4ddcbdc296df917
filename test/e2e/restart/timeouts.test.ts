// --hand-over-connections: the timeouts of a connection continue when it is handed over, any number of times.

import t from 'tap';
import {
  bootstrap,
  connectRaw,
  EpochLine,
  httpListener,
  httpRequest,
  routeAllTo,
  startUpstream,
  staticCluster,
  tcpListener,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';
import { openStream, startPeers } from '../tcp/stream.js';

/** Longer than a restart takes, so that no connection spends its whole timeout in one process. */
const TIME = '5s';
/** So many restarts take far longer than TIME. */
const MAX_RESTARTS = 20;
const ARGS = ['--concurrency', '1', '--parent-shutdown-time-s', '600', '--drain-time-s', '600'];

// These tests are idle most of the time.
t.jobs = 2;

t.test('each timeout closes its connection on time during consecutive restarts', async (t) => {
  const peers = await startPeers(t);
  const web = managerOf([answering({ prefix: '/' }, 'hi')]);
  const config = bootstrap({
    listeners: [
      tcpListener('silent', 0, { cluster: 'db', idle_timeout: TIME }),
      tcpListener('old', 0, { cluster: 'db', max_downstream_connection_duration: TIME }),
      httpListener('idle', 0, {
        ...web,
        common_http_protocol_options: { idle_timeout: TIME },
        drain_timeout: '0.001s',
      }),
      httpListener('slow', 0, { ...web, request_headers_timeout: TIME }),
      httpListener('aged', 0, {
        ...web,
        common_http_protocol_options: { max_connection_duration: TIME },
        drain_timeout: '0.001s',
      }),
    ],
    clusters: [staticCluster('db', peers.port)],
  });
  const line = new EpochLine(t);
  const args = [...ARGS, '--hand-over-connections'];
  let current = await line.start(0, { config, args });
  const streams = [];
  for (const name of ['silent', 'old']) streams.push(await openStream(t, await current.listenerPort(name)));
  for (const { socket } of streams) socket.write('.');
  for (const _ of streams) await (await peers.next()).receives(1);
  const clients = [];
  for (const name of ['idle', 'slow', 'aged']) clients.push(await connectRaw(t, await current.listenerPort(name)));
  for (const client of clients) {
    client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.readUntil('\r\n\r\nhi');
  }
  clients[1]!.write('GET / HTTP/1.1\r\nHo');
  const isRead = async () => (await current.stat('http.slow.downstream_cx_rx_bytes_buffered'))! > 0;
  await waitFor(isRead, { what: 'half a header section in the proxy' });

  const all = [...streams, ...clients];
  let restarts = 0;
  while (all.some(({ closed }) => closed === 'open') && restarts < MAX_RESTARTS) {
    const next = await line.start(++restarts, { config, args });
    await waitFor(() => current.exit !== undefined, { what: 'the exit of the old process' });
    current = next;
    if (restarts > 1) continue;
    const received = (await current.stat('server.hand_over.connections_received'))!;
    // On a slow machine some may have timed out before.
    t.ok(received + all.filter(({ closed }) => closed !== 'open').length >= all.length, `${received} were handed over`);
  }
  t.same(
    all.map(({ closed }) => closed),
    all.map(() => 'end'),
    `after ${restarts} restarts`,
  );
  t.match(clients[1]!.received, /^HTTP\/1\.1 408 /);
  for (const stat of [
    'tcp.silent.idle_timeout',
    'tcp.old.max_downstream_connection_duration',
    'http.idle.downstream_cx_idle_timeout',
    'http.slow.downstream_rq_header_timeout',
    'http.aged.downstream_cx_max_duration_reached',
  ]) {
    t.equal(await current.stat(stat), 1, stat);
  }
  await current.stop();
});

t.test('the time that a connection waits for a hung process does not count as idle', async (t) => {
  const peers = await startPeers(t);
  const asked: { path: string; answer(): void }[] = [];
  const upstream = await startUpstream(t, ({ url = '' }, response) => {
    asked.push({ path: url, answer: () => response.end(url) });
  });
  // Shorter than the wait for the child's reply.
  const time = '4s';
  const config = bootstrap({
    listeners: [
      tcpListener('tcp', 0, { cluster: 'db', idle_timeout: time }),
      httpListener('web', 0, { route_config: routeAllTo('web'), stream_idle_timeout: time }),
    ],
    clusters: [staticCluster('db', peers.port), staticCluster('web', upstream.port)],
  });
  const line = new EpochLine(t);
  const args = [...ARGS, '--hand-over-connections'];
  const parent = await line.start(0, { config, args });
  const client = await openStream(t, await parent.listenerPort('tcp'));
  const server = await peers.next();
  const chatter = setInterval(() => client.socket.write('.'), 50);
  t.teardown(() => clearInterval(chatter));
  await server.receives(1);
  const browser = await connectRaw(t, await parent.listenerPort('web'));

  // The parent is stopped while the child becomes live, and then finds the child stopped.
  const admin = { address: { socket_address: { address: '::1', port_value: 0 } } };
  const child = await line.start(1, { config: { ...config, admin }, args, wait: 'spawned' });
  await waitForLog(child, 'starting workers');
  browser.write(['/1', '/2'].map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''));
  await waitFor(() => asked.length === 1, { what: 'the first of two requests' });
  parent.child.kill('SIGSTOP');
  const ask = (path: string) => httpRequest(child.adminPort, path, { host: '::1' });
  await waitFor(async () => (await ask('/ready')).status === 200, { what: 'the child to be live' });
  child.child.kill('SIGSTOP');
  parent.child.kill('SIGCONT');
  await waitForLog(parent, 'handing established connections over to the child process');
  asked[0]!.answer();
  await browser.readUntil('\r\n\r\n/1');
  const { length } = server;
  await waitForLog(parent, "connections of listener 'tcp' stay in this process");
  await server.receives(length + 5);
  t.equal(client.closed, 'open');
  await waitFor(() => asked.length === 2, { what: 'the second request' });
  asked[1]!.answer();
  t.match(await browser.readUntil('\r\n\r\n'), /^HTTP\/1\.1 200 /);
  t.equal(await browser.read(2), '/2');
  child.child.kill('SIGCONT');
  const bothStayed = async () => /connections_kept: 2$/m.test((await ask('/stats?filter=hand_over')).body.toString());
  await waitFor(bothStayed, { what: 'two connections that stayed' });
  await child.stop();
  await parent.exited;
});
