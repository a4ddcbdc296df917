// An exception in the handling of one connection closes that connection with an error in the log, and has no other effect.

import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  httpListener,
  httpRequest,
  routeAllTo,
  startBlackHole,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { openStream, startPeers } from '../../tcp/stream.js';
import { startBreakableBaton } from './fault-injection.js';

const web = await startUpstream(t, ({ url }, response) => {
  if (url === '/reset') {
    response.socket!.resetAndDestroy();
    return;
  }
  if (url === '/in-head') response.setHeader('x-fault', 'BOOM');
  if (url === '/in-body') {
    response.write('a beginning, ');
    setImmediate(() => response.end('BOOM'));
    return;
  }
  if (url !== '/hang') response.end('fine');
});
const peers = await startPeers(t);
const faultyHead = [{ header: { key: 'x-fault', value: 'BOOM' } }];
const faultyConnect: Config = { pipe: { path: '@BOOM' } };
const oneConnection = { connect_timeout: '0.5s', circuit_breakers: { thresholds: [{ max_connections: 1 }] } };
const log = join(tempDir(t), 'tcp.log');
const { baton } = await startBreakableBaton(t, {
  config: bootstrap({
    listeners: [
      httpListener('web', 0, { route_config: routeAllTo('web') }),
      httpListener('slow', 0, {
        route_config: routes([{ ...to('/', 'web', '0.1s'), response_headers_to_add: faultyHead }]),
      }),
      httpListener('failing', 0, {
        route_config: routes([
          { ...to('/faulty', 'hole', '0s'), response_headers_to_add: faultyHead },
          { ...to('/reset', 'web', '0s'), response_headers_to_add: faultyHead },
          to('/connect', 'faulty', '0s'),
          to('/', 'hole', '0s'),
        ]),
      }),
      tcpListener('wire', 0, { cluster: 'peers' }),
      tcpListener('brief', 0, { cluster: 'peers', idle_timeout: '0.2s' }),
      tcpListener('unconnected', 0, { cluster: 'faulty', access_log: [fileAccessLog(log, '%UPSTREAM_CLUSTER%\n')] }),
    ],
    clusters: [
      staticCluster('web', web.port),
      staticCluster('peers', peers.port),
      staticCluster('hole', await startBlackHole(t), oneConnection),
      {
        ...staticCluster('faulty', []),
        ...oneConnection,
        load_assignment: {
          cluster_name: 'faulty',
          endpoints: [{ lb_endpoints: [{ endpoint: { address: faultyConnect } }] }],
        },
      },
    ],
  }),
  args: ['--file-flush-interval-msec', '20'],
});
const webPort = await baton.listenerPort('web');
const slowPort = await baton.listenerPort('slow');
const failingPort = await baton.listenerPort('failing');
const wirePort = await baton.listenerPort('wire');

// Connections on the same worker that must stay unaffected.
const neighbour = await connectRaw(t, webPort);
const wireNeighbour = await openStream(t, wirePort);
const wireNeighbourPeer = await peers.next();

const requests: [what: string, path: string][] = [
  ['a request is sent to the host', '/BOOM'],
  ['a request is sent on a connection that was idle', '/BOOM-again'],
  ['the header section of a response is sent to the client', '/in-head'],
  ['the body of a response is sent to the client', '/in-body'],
];
for (const [what, path] of requests) {
  t.test(`HTTP: an exception while ${what} closes that connection only`, async (t) => {
    const errors = faults();
    const connection = await connectRaw(t, webPort);
    connection.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    const { text, closed } = await connection.readToEnd();
    t.not(closed, 'open');
    t.notMatch(text, 'BOOM');
    t.notMatch(text, /\r\n0\r\n\r\n$/, 'an aborted response does not look complete');
    await isLoggedOnce(t, errors);
    await neighboursAreUnaffected(t);
    await nothingIsLeft();
  });
}

t.test('HTTP: an exception in a timer that sends a reply', async (t) => {
  const errors = faults();
  const connection = await connectRaw(t, slowPort);
  connection.write('GET /hang HTTP/1.1\r\nhost: a\r\n\r\n');
  const { text, closed } = await connection.readToEnd();
  t.not(closed, 'open');
  t.notMatch(text, /\r\n\r\n/, 'no complete header section');
  await isLoggedOnce(t, errors);
  await neighboursAreUnaffected(t);
  await nothingIsLeft();
  await baton.waitForStat('http.slow.downstream_rq_active', 0);
  await baton.waitForStat('http.slow.downstream_cx_active', 0);
});

t.test('HTTP: an exception after the host has closed its connection', async (t) => {
  const errors = faults();
  const connection = await connectRaw(t, failingPort);
  connection.write('GET /reset HTTP/1.1\r\nhost: a\r\n\r\n');
  t.not((await connection.readToEnd()).closed, 'open');
  await isLoggedOnce(t, errors);
  await neighboursAreUnaffected(t);
  await nothingIsLeft();
  await baton.waitForStat('cluster.web.upstream_cx_active', 1);
  await baton.waitForStat('http.failing.downstream_cx_active', 0);
});

t.test('HTTP: an exception after a failed connect with several requests in its queue', async (t) => {
  const errors = faults();
  const connection = await connectRaw(t, failingPort);
  connection.write('GET /faulty HTTP/1.1\r\nhost: a\r\n\r\n');
  await baton.waitForStat('cluster.hole.upstream_rq_pending_active', 1);
  const others = [httpRequest(failingPort, '/'), httpRequest(failingPort, '/')];
  t.not((await connection.readToEnd()).closed, 'open');
  for (const { status } of await Promise.all(others)) t.equal(status, 503);
  await isLoggedOnce(t, errors);
  await neighboursAreUnaffected(t);
  await baton.waitForStat('cluster.hole.upstream_rq_pending_active', 0);
  await baton.waitForStat('http.failing.downstream_cx_active', 0);
});

t.test('HTTP: an exception when a connect starts', async (t) => {
  for (let attempt = 0; attempt < 2; attempt++) {
    const errors = faults();
    const connection = await connectRaw(t, failingPort);
    connection.write('GET /connect HTTP/1.1\r\nhost: a\r\n\r\n');
    t.not((await connection.readToEnd()).closed, 'open');
    await isLoggedOnce(t, errors);
  }
  await neighboursAreUnaffected(t);
  await nothingCountsFor('faulty');
});

t.test('TCP: an exception when a connect starts', async (t) => {
  const errors = faults();
  const client = connect(await baton.listenerPort('unconnected'), '127.0.0.1');
  const [error] = await once(client.resume(), 'error');
  t.equal(error.code, 'ECONNRESET');
  await isLoggedOnce(t, errors);
  await neighboursAreUnaffected(t);
  await nothingCountsFor('faulty');
  await waitFor(() => existsSync(log) && readFileSync(log, 'utf8') === 'faulty\n', {
    what: 'the line of the access log',
  });
});

t.test('TCP: an exception in a timer that closes a connection', async (t) => {
  const errors = faults();
  const client = await openStream(t, await baton.listenerPort('brief'));
  const server = await peers.next();
  void client.write('FUSE');
  await server.receives(4);
  t.equal(await client.isClosed(), 'reset');
  t.equal(await server.isClosed(), 'reset');
  await isLoggedOnce(t, errors);
  await neighboursAreUnaffected(t);
  await nothingIsLeft();
});

for (const side of ['client', 'server'] as const) {
  t.test(`TCP: an exception while bytes of the ${side} are forwarded`, async (t) => {
    const errors = faults();
    const client = await openStream(t, wirePort);
    const server = await peers.next();
    void client.write('hello');
    await server.receives(5);
    (side === 'client' ? client : server).socket.write('BOOM');
    t.equal(await client.isClosed(), 'reset', 'the client sees an aborted stream');
    t.equal(await server.isClosed(), 'reset', 'the server sees an aborted stream');
    await isLoggedOnce(t, errors);
    await neighboursAreUnaffected(t);
    await nothingIsLeft();
  });
}

t.test('the worker has survived every fault', async (t) => {
  t.notMatch(baton.stderr, 'died');
  t.equal((await httpRequest(webPort, '/')).body, 'fine');
  wireNeighbour.end();
  wireNeighbourPeer.end();
  neighbour.end();
  await baton.waitForStat('http.web.downstream_cx_active', 0);
  await baton.waitForStat('cluster.peers.upstream_cx_active', 0);
  t.equal(await baton.stat('server.envoy_bug_failures'), faults(), 'each fault is counted');
  await baton.stop();
});

/** Checks that exactly one more fault is logged than before. */
async function isLoggedOnce(t: Test, before: number): Promise<void> {
  await waitFor(() => faults() > before, { what: 'the error in the log' });
  t.equal(faults(), before + 1, 'it is logged once');
}

function faults(): number {
  return baton.stderr.split(/a connection was ended after an internal error|a timer failed/).length - 1;
}

async function neighboursAreUnaffected(t: Test): Promise<void> {
  neighbour.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await neighbour.readUntil(/fine(\r\n0\r\n\r\n)?$/);
  const { length } = wireNeighbourPeer;
  void wireNeighbour.write('ping');
  await wireNeighbourPeer.receives(length + 4);
  t.equal(neighbour.closed, 'open');
  t.equal(wireNeighbour.closed, 'open');
}

/** The gauges count the two neighbours, and none of the closed connections. */
async function nothingIsLeft(): Promise<void> {
  await baton.waitForStat('http.web.downstream_cx_active', 1);
  await baton.waitForStat('http.web.downstream_rq_active', 0);
  await baton.waitForStat('cluster.web.upstream_rq_active', 0);
  await baton.waitForStat('cluster.web.upstream_rq_pending_active', 0);
  await baton.waitForStat('cluster.peers.upstream_cx_active', 1);
}

/** No connect that failed to start is counted, and no circuit breaker counts it. */
async function nothingCountsFor(cluster: string): Promise<void> {
  for (const stat of ['upstream_cx_active', 'upstream_cx_overflow', 'upstream_rq_pending_active']) {
    await baton.waitForStat(`cluster.${cluster}.${stat}`, 0);
  }
}

function routes(list: readonly Config[]): Config {
  return { virtual_hosts: [{ name: 'all', domains: ['*'], routes: list }] };
}

function to(prefix: string, cluster: string, timeout: string): Config {
  return { match: { prefix }, route: { cluster, timeout } };
}
