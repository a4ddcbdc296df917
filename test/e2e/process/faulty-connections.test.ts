// An exception in the handling of one connection ends that connection with an error in the log, and nothing else.

import t, { type Test } from 'tap';
import {
  bootstrap,
  connectRaw,
  httpListener,
  httpRequest,
  routeAllTo,
  startUpstream,
  staticCluster,
  tcpListener,
  waitFor,
} from '../harness/index.js';
import { openStream, startPeers } from '../tcp/stream.js';
import { startBreakableBaton } from './fault-injection.js';

const web = await startUpstream(t, ({ url }, response) => {
  if (url === '/in-head') response.setHeader('x-fault', 'BOOM');
  if (url === '/in-body') {
    response.write('a beginning, ');
    setImmediate(() => response.end('BOOM'));
    return;
  }
  if (url !== '/hang') response.end('fine');
});
const peers = await startPeers(t);
const { baton } = await startBreakableBaton(t, {
  config: bootstrap({
    listeners: [
      httpListener('web', 0, { route_config: routeAllTo('web') }),
      httpListener('slow', 0, {
        route_config: {
          virtual_hosts: [
            {
              name: 'all',
              domains: ['*'],
              routes: [
                {
                  match: { prefix: '/' },
                  route: { cluster: 'web', timeout: '0.1s' },
                  response_headers_to_add: [{ header: { key: 'x-fault', value: 'BOOM' } }],
                },
              ],
            },
          ],
        },
      }),
      tcpListener('wire', 0, { cluster: 'peers' }),
    ],
    clusters: [staticCluster('web', web.port), staticCluster('peers', peers.port)],
  }),
});
const webPort = await baton.listenerPort('web');
const slowPort = await baton.listenerPort('slow');
const wirePort = await baton.listenerPort('wire');

// Connections on the same worker that must not notice anything.
const neighbour = await connectRaw(t, webPort);
const wireNeighbour = await openStream(t, wirePort);
const wireNeighbourPeer = await peers.next();

const requests: [what: string, path: string][] = [
  ['a request is sent to the upstream', '/BOOM'],
  ['a request is sent on a connection that was idle', '/BOOM-again'],
  ['the head of an answer is sent to the client', '/in-head'],
  ['the body of an answer is sent to the client', '/in-body'],
];
for (const [what, path] of requests) {
  t.test(`HTTP: while ${what}`, async (t) => {
    const errors = faults();
    const connection = await connectRaw(t, webPort);
    connection.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    const { text, closed } = await connection.readToEnd();
    t.not(closed, 'open');
    t.notMatch(text, 'BOOM');
    t.notMatch(text, /\r\n0\r\n\r\n$/, 'what was cut short does not look complete');
    await isLoggedOnce(t, errors);
    await neighboursAreWell(t);
    await nothingIsLeft();
  });
}

t.test('HTTP: while a timer answers', async (t) => {
  const errors = faults();
  const connection = await connectRaw(t, slowPort);
  connection.write('GET /hang HTTP/1.1\r\nhost: a\r\n\r\n');
  const { text, closed } = await connection.readToEnd();
  t.not(closed, 'open');
  t.notMatch(text, /\r\n\r\n/, 'no whole head has come');
  await isLoggedOnce(t, errors);
  await neighboursAreWell(t);
  await nothingIsLeft();
  await baton.waitForStat('http.slow.downstream_rq_active', 0);
  await baton.waitForStat('http.slow.downstream_cx_active', 0);
});

for (const side of ['client', 'server'] as const) {
  t.test(`TCP: while bytes of the ${side} are passed on`, async (t) => {
    const errors = faults();
    const client = await openStream(t, wirePort);
    const server = await peers.next();
    void client.write('hello');
    await server.receives(5);
    (side === 'client' ? client : server).socket.write('BOOM');
    t.equal(await client.isClosed(), 'reset', 'the client sees that the stream is not whole');
    t.equal(await server.isClosed(), 'reset', 'the server too');
    await isLoggedOnce(t, errors);
    await neighboursAreWell(t);
    await nothingIsLeft();
  });
}

t.test('the worker has survived it all', async (t) => {
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

/** One fault more than there were before is logged. */
async function isLoggedOnce(t: Test, before: number): Promise<void> {
  await waitFor(() => faults() > before, { what: 'the error in the log' });
  t.equal(faults(), before + 1, 'it is logged once');
}

function faults(): number {
  return baton.stderr.split(/a connection was ended after an internal error|a timer failed/).length - 1;
}

async function neighboursAreWell(t: Test): Promise<void> {
  neighbour.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await neighbour.readUntil(/fine(\r\n0\r\n\r\n)?$/);
  const { length } = wireNeighbourPeer;
  void wireNeighbour.write('ping');
  await wireNeighbourPeer.receives(length + 4);
  t.equal(neighbour.closed, 'open');
  t.equal(wireNeighbour.closed, 'open');
}

/** Gauges count the two neighbours, and none of the connections that were ended. */
async function nothingIsLeft(): Promise<void> {
  await baton.waitForStat('http.web.downstream_cx_active', 1);
  await baton.waitForStat('http.web.downstream_rq_active', 0);
  await baton.waitForStat('cluster.web.upstream_rq_active', 0);
  await baton.waitForStat('cluster.web.upstream_rq_pending_active', 0);
  await baton.waitForStat('cluster.peers.upstream_cx_active', 1);
}
