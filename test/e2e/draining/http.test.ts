// Graceful drains of HTTP listeners: clients are asked to close, and lose no request.

import t from 'tap';
import {
  type BatonProcess,
  bootstrap,
  connectRaw,
  httpListener,
  type RawConnection,
  routeAllTo,
  startBaton,
  startEchoUpstream,
  staticCluster,
  type Teardown,
  waitFor,
} from '../harness/index.js';
import { startBreakableBaton } from '../process/faults/fault-injection.js';
import { SteadyClient } from './steady-client.js';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

const echo = await startEchoUpstream(t);
const manager = { route_config: routeAllTo('echo') };
const config = bootstrap({
  listeners: [
    { ...httpListener('in', 0, manager), traffic_direction: 'INBOUND' },
    { ...httpListener('out', 0, manager), traffic_direction: 'OUTBOUND' },
    { ...httpListener('steadfast', 0, manager), drain_type: 'MODIFY_ONLY' },
  ],
  clusters: [staticCluster('echo', echo.port)],
});

function start(t: Teardown, ...args: string[]): Promise<BatonProcess> {
  return startBaton(t, { config, args: ['-l', 'warning', '--concurrency', '2', ...args] });
}

async function drain(baton: BatonProcess, query: string): Promise<void> {
  const { body, status } = await baton.admin(`/drain_listeners?${query}`, { method: 'POST' });
  if (status !== 200 || body !== 'OK\n') throw new Error(`${status} ${body}`);
}

interface DrainStatus {
  mode: string;
  reach?: string;
  reason?: string;
  elapsed?: string;
  remaining?: string;
  listeners: { name: string; state: string; connections: number; requests: number }[];
}

async function drainStatus(baton: BatonProcess): Promise<DrainStatus> {
  return JSON.parse((await baton.admin('/drain_status')).body) as DrainStatus;
}

/** Sends a request; returns whether the response announces the close. */
async function closes(connection: RawConnection): Promise<boolean> {
  connection.write(GET);
  const head = await connection.readUntil('\r\n\r\n');
  await connection.read(Number(/content-length: (\d+)/i.exec(head)![1]));
  const isLast = /\r\nconnection: close\r\n/i.test(head);
  if (!isLast) return false;
  const { closed, text } = await connection.readToEnd();
  if (closed !== 'end' || text !== '') throw new Error(`${closed} after '${text}'`);
  return true;
}

t.test('gradual strategy: by the end of the drain time every response is the last, and no request fails', async (t) => {
  const baton = await start(t, '--drain-time-s', '2');
  const clients = SteadyClient.start(t, await baton.listenerPort('out'), 8);
  await Promise.all(clients.map((client) => client.answers(5)));
  t.same(await drainStatus(baton).then(({ mode }) => mode), 'none');
  t.notOk(
    clients.some((client) => client.closing.includes(true)),
    'no client is asked to close before',
  );
  await drain(baton, 'graceful&skip_exit');
  const status = await waitFor(async () => {
    const now = await drainStatus(baton);
    return now.remaining === '0.000s' && now;
  });
  t.match(status, { mode: 'gradual', reach: 'all', reason: 'admin', elapsed: /^\d+\.\d{3}s$/ });
  // The request in flight may have been answered before.
  await Promise.all(clients.map((client) => client.answers(1)));
  const before = clients.map((client) => client.closing.length);
  await Promise.all(clients.map((client) => client.answers(5)));
  t.same(
    clients.flatMap((client) => client.failures),
    [],
  );
  for (const [index, { closing }] of clients.entries()) t.notOk(closing.slice(before[index]).includes(false));
  t.equal(await baton.stat('listener_manager.listener_stopped'), 0, 'skip_exit stops nothing');
  t.equal(await baton.stat('listener_manager.total_listeners_draining'), 0, 'no update has replaced a listener');
  await drain(baton, '');
  t.equal(await baton.stat('listener_manager.total_listeners_draining'), 0, 'stopped listeners no longer drain');
});

t.test(
  'immediate strategy: every response is the last; listeners accept until the end of the drain time, and lose no connection',
  async (t) => {
    const baton = await start(t, '--drain-time-s', '2', '--drain-strategy', 'immediate');
    const port = await baton.listenerPort('in');
    const clients = SteadyClient.start(t, port, 8);
    const idle = await connectRaw(t, port);
    t.equal(await closes(idle), false);
    await Promise.all(clients.map((client) => client.answers(5)));
    await drain(baton, 'graceful');
    await Promise.all(clients.map((client) => client.answers(1)));
    const before = clients.map((client) => client.closing.length);
    await waitFor(() => clients.every((client) => client.isRefused || client.failures.length > 0));
    t.same(
      clients.flatMap((client) => client.failures),
      [],
    );
    for (const [index, { closing }] of clients.entries()) {
      t.ok(closing.length > before[index]!, 'it came back while the listener was draining');
      t.notOk(closing.slice(before[index]).includes(false));
    }
    t.equal(await baton.stat('listener_manager.listener_stopped'), 3);
    await baton.waitForStat('listener_manager.total_listeners_draining', 0);
    t.same((await drainStatus(baton)).listeners, [
      { name: 'in', state: 'STOPPED', connections: 1, requests: 0 },
      { name: 'out', state: 'STOPPED', connections: 0, requests: 0 },
      { name: 'steadfast', state: 'STOPPED', connections: 0, requests: 0 },
    ]);
    t.equal(idle.closed, 'open', 'a close could cross a request in flight');
    t.equal(await closes(idle), true, 'its next response closes it');
    const closing = clients.flatMap((client) => client.closing).filter((isLast) => isLast).length;
    await baton.waitForStat('http.in.downstream_cx_drain_close', closing + 1);
    t.match(await baton.admin('/ready'), { status: 200, body: 'LIVE\n' });
  },
);

t.test('inboundonly drains listeners for inbound traffic, and a later drain of all listeners extends it', async (t) => {
  const baton = await start(t, '--drain-time-s', '600', '--drain-strategy', 'immediate');
  const [inbound, outbound] = [await baton.listenerPort('in'), await baton.listenerPort('out')];
  const connections = [await connectRaw(t, outbound), await connectRaw(t, inbound)] as const;
  await drain(baton, 'inboundonly&graceful');
  t.equal(await closes(connections[0]), false);
  t.equal(await closes(connections[1]), true);
  const { elapsed, ...first } = await drainStatus(baton);
  t.match(first, { mode: 'immediate', reach: 'inbound' });
  t.same(
    first.listeners.map(({ connections, name, state }) => [name, state, connections]),
    [
      ['in', 'DRAINING', 0],
      ['out', 'ACTIVE', 1],
      ['steadfast', 'ACTIVE', 0],
    ],
  );
  await drain(baton, 'inboundonly&graceful');
  const again = await drainStatus(baton);
  t.ok(Number.parseFloat(again.elapsed!) >= Number.parseFloat(elapsed!), 'a second call joins the first');
  await drain(baton, 'graceful');
  t.match(await drainStatus(baton), { reach: 'all' });
  t.equal(await closes(connections[0]), true);
  t.equal(await baton.stat('listener_manager.listener_stopped'), 0);
});

t.test('a request served while its listener drains is counted as drained, and gets its response', async (t) => {
  const baton = await start(t, '--drain-time-s', '600', '--drain-strategy', 'immediate');
  const connection = await connectRaw(t, await baton.listenerPort('in'));
  connection.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab');
  await baton.waitForStat('http.in.downstream_rq_active', 1);
  await drain(baton, 'graceful');
  t.match((await drainStatus(baton)).listeners[0], { name: 'in', state: 'DRAINING', connections: 1, requests: 1 });
  connection.write('cd');
  const { closed, text } = await connection.readToEnd();
  t.match(text, /^HTTP\/1\.1 200[\s\S]*"body":"abcd"}$/);
  t.equal(closed, 'end');
});

t.test('the replacement of a dead worker continues the drain', async (t) => {
  const args = ['--drain-time-s', '600', '--drain-strategy', 'immediate'];
  const { baton, killWorker } = await startBreakableBaton(t, { config, args });
  const port = await baton.listenerPort('in');
  await drain(baton, 'graceful');
  await killWorker('throw');
  t.equal(await closes(await connectRaw(t, port)), true);
});

t.test(
  'a listener with drain_type MODIFY_ONLY ignores failed health checks, and drains like others on demand',
  async (t) => {
    const baton = await start(t, '--drain-time-s', '600', '--drain-strategy', 'immediate');
    const connections = [
      await connectRaw(t, await baton.listenerPort('steadfast')),
      await connectRaw(t, await baton.listenerPort('in')),
    ] as const;
    await baton.admin('/healthcheck/fail', { method: 'POST' });
    t.equal(await closes(connections[0]), false);
    t.equal(await closes(connections[1]), true);
    await drain(baton, 'graceful');
    t.equal(await closes(connections[0]), true);
  },
);
