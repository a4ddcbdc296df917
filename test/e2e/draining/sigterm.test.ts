// --drain-on-sigterm: the server lets its clients finish before it exits.

import type { ServerResponse } from 'node:http';
import t from 'tap';
import {
  type BatonProcess,
  bootstrap,
  connectRaw,
  EpochLine,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tcpListener,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { openStream, startPeers } from '../tcp/stream.js';
import { SteadyClient } from './steady-client.js';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

/** Responses to /slow, whose header section and first bytes have been sent. */
const slow: ServerResponse[] = [];
const web = await startUpstream(t, (request, response) => {
  if (request.url === '/slow') {
    response.setHeader('content-length', '10');
    response.write('first');
    slow.push(response);
  } else response.end('quick');
});
const peers = await startPeers(t);
const config = bootstrap({
  listeners: [
    httpListener('web', 0, { route_config: routeAllTo('web') }),
    tcpListener('wire', 0, { cluster: 'peers' }),
  ],
  clusters: [staticCluster('web', web.port), staticCluster('peers', peers.port)],
});

async function start(t: Teardown, ...args: string[]): Promise<{ baton: BatonProcess; port: number }> {
  const baton = await startBaton(t, { config, args: ['--concurrency', '2', '--drain-on-sigterm', ...args] });
  return { baton, port: await baton.listenerPort('web') };
}

/** Sends SIGTERM, and waits until the drain has started. */
async function terminate(baton: BatonProcess): Promise<void> {
  baton.child.kill('SIGTERM');
  await waitFor(async () => (await baton.admin('/ready')).status === 503, { what: 'readiness to fail' });
}

t.test('a response in flight is finished, and the server exits after its last client has closed', async (t) => {
  const { baton, port } = await start(t, '--drain-time-s', '600', '--drain-strategy', 'immediate');
  const count = slow.length;
  const answer = httpRequest(port, '/slow');
  await waitFor(() => slow.length > count, { what: 'the request' });
  const idle = await connectRaw(t, port);
  await terminate(baton);
  t.equal((await baton.admin('/ready')).body, 'DRAINING\n');
  t.equal(await baton.stat('server.live'), 0);
  t.match(JSON.parse((await baton.admin('/drain_status')).body), {
    mode: 'immediate',
    reason: 'sigterm',
    reach: 'all',
  });
  t.match(await httpRequest(port, '/'), { status: 200, body: 'quick' }, 'new connections are still served');
  await baton.admin('/healthcheck/ok', { method: 'POST' });
  t.equal((await baton.admin('/ready')).status, 503, 'readiness fails nevertheless');
  // No response is due on it that could announce the close: it stays until its client closes or sends a request.
  t.equal(idle.closed, 'open');
  idle.write(GET);
  t.match(await idle.readToEnd(), { text: /^HTTP\/1\.1 200[\s\S]*\r\nconnection: close\r\n/i, closed: 'end' });
  slow.at(-1)!.end(' last');
  t.match(await answer, { status: 200, body: 'first last' });
  t.same(await baton.exited, { code: 0, signal: null });
  t.match(baton.stderr, 'the last connection has ended');
  t.notMatch(baton.stderr, 'the time to drain is over');
});

t.test('responses in flight in the parent process are finished too', async (t) => {
  const line = new EpochLine(t);
  const args = ['--drain-on-sigterm', '--parent-shutdown-time-s', '900', '--drain-time-s'];
  const parent = await line.start(0, { config, args: [...args, '600'] });
  const port = await parent.listenerPort('web');
  const count = slow.length;
  const answer = httpRequest(port, '/slow');
  await waitFor(() => slow.length > count, { what: 'the request' });
  const child = await line.start(1, { config, args: [...args, '30'] });
  await waitForLog(parent, 'draining all listeners');
  await terminate(child);
  await waitForLog(child, "listener 'web' is stopped");
  await child.waitForStat('server.parent_connections', 1);
  slow.at(-1)!.end(' last');
  t.match(await answer, { status: 200, body: 'first last' });
  t.same(await child.exited, { code: 0, signal: null });
  t.same(await parent.exited, { code: 0, signal: null });
  t.match(child.stderr, 'the last connection has ended');
  t.notMatch(parent.stderr, '[error]', 'a parent terminated by its child is not a failure');
});

t.test('a process that was replaced by its child exits as soon as it has no connections', async (t) => {
  const line = new EpochLine(t);
  const args = ['--drain-on-sigterm', '--parent-shutdown-time-s', '900', '--drain-time-s', '600'];
  const parent = await line.start(0, { config, args });
  const port = await parent.listenerPort('web');
  const child = await line.start(1, { config, args });
  await waitForLog(parent, 'draining all listeners');
  parent.child.kill('SIGTERM');
  t.same(await parent.exited, { code: 0, signal: null });
  t.match(parent.stderr, 'the last connection has ended');
  t.notMatch(parent.stderr, 'new connections are accepted', 'by the parent, whose clients connect to the child');
  t.equal((await httpRequest(port, '/')).body, 'quick');
  await child.kill('SIGINT');
});

t.test('clients that repeat requests lose none until connections are refused', async (t) => {
  const { baton, port } = await start(t, '--drain-time-s', '2', '--drain-strategy', 'immediate');
  const clients = SteadyClient.start(t, port, 8);
  await Promise.all(clients.map((client) => client.answers(5)));
  await terminate(baton);
  t.same(await baton.exited, { code: 0, signal: null });
  await waitFor(() => clients.every((client) => client.isRefused || client.failures.length > 0));
  t.same(
    clients.flatMap((client) => client.failures),
    [],
  );
});

t.test('the server exits at the end of the drain time, even with open connections', async (t) => {
  const { baton, port } = await start(t, '--drain-time-s', '1');
  const idle = await connectRaw(t, port);
  idle.write(GET);
  await idle.readUntil('quick');
  const client = await openStream(t, await baton.listenerPort('wire'));
  const server = await peers.next();
  await server.write('some bytes');
  await terminate(baton);
  t.same(await baton.exited, { code: 0, signal: null });
  t.match(baton.stderr, 'the time to drain is over');
  t.equal(await client.isClosed(), 'end');
  t.equal(await server.isClosed(), 'end');
  t.equal(client.head, 'some bytes');
  t.not((await idle.readToEnd()).closed, 'open');
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`${signal} during the drain ends the server at once`, async (t) => {
    const { baton, port } = await start(t, '--drain-time-s', '600');
    const idle = await connectRaw(t, port);
    await baton.waitForStat('http.web.downstream_cx_active', 1);
    await terminate(baton);
    t.same(await baton.kill(signal), { code: 0, signal: null });
    t.not((await idle.readToEnd()).closed, 'open');
    t.notMatch(baton.stderr, 'the time to drain is over');
  });
}

t.test('SIGINT and /quitquitquit do not drain', async (t) => {
  const first = await start(t, '--drain-time-s', '600');
  const idle = await connectRaw(t, first.port);
  t.same(await first.baton.kill('SIGINT'), { code: 0, signal: null });
  t.not((await idle.readToEnd()).closed, 'open');
  const second = await start(t, '--drain-time-s', '600');
  await connectRaw(t, second.port);
  await second.baton.admin('/quitquitquit', { method: 'POST' });
  t.same(await second.baton.exited, { code: 0, signal: null });
});
