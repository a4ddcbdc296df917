// Connection limits set by runtime: of one listener, and of all of them, over all workers.

import t from 'tap';
import {
  bootstrap,
  connectRaw,
  httpListener,
  loopback,
  type RawConnection,
  startBaton,
  waitFor,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

const manager = managerOf([answering({ prefix: '/' }, 'served')]);
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      httpListener('main', 0, manager),
      httpListener('other', 0, manager),
      { ...httpListener('exempt', 0, manager), ignore_global_conn_limit: true },
    ],
    clusters: [],
    extra: { layered_runtime: {}, admin: { address: loopback(0), ignore_global_conn_limit: true } },
  }),
  args: ['-l', 'warning', '--concurrency', '2'],
});
const main = await baton.listenerPort('main');
const other = await baton.listenerPort('other');
const exempt = await baton.listenerPort('exempt');
const LISTENER = 'envoy.resource_limits.listener.main.connection_limit';
const GLOBAL = 'overload.global_downstream_max_connections';

async function modify(key: string, value: string): Promise<void> {
  await baton.admin(`/runtime_modify?${key}=${value}`, { method: 'POST' });
}

/** Opens a connection that has been served and stays; undefined when it was closed without a response. */
async function connect(port: number): Promise<RawConnection | undefined> {
  const connection = await connectRaw(t, port);
  connection.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await waitFor(() => connection.received.includes('served') || connection.closed !== 'open', {
    what: 'a response or the close',
  });
  return connection.received.includes('served') ? connection : undefined;
}

/** Returns how many of ten further connections are served beside `held` others; they are closed again. */
async function served(port: number, held: number): Promise<number> {
  await baton.waitForStat('server.total_connections', held);
  const connections = await Promise.all(Array.from({ length: 10 }, () => connect(port)));
  for (const connection of connections) connection?.destroy();
  await baton.waitForStat('server.total_connections', held);
  return connections.filter((connection) => connection !== undefined).length;
}

const countTo = (port: number, expected: number, held: number) =>
  waitFor(async () => (await served(port, held)) === expected, { what: `${expected} of ten connections served` });

t.test("a listener's limit counts its open connections on all workers", async (t) => {
  const early = await Promise.all([connect(main), connect(main), connect(main)]);
  t.equal(await served(main, 3), 10);
  await modify(LISTENER, '5');
  await countTo(main, 2, 3);
  t.equal(await served(other, 3), 10);
  t.ok((await baton.stat('listener.main.downstream_cx_overflow'))! >= 8);
  early[0]!.destroy();
  await countTo(main, 3, 2);
  await modify(LISTENER, '');
  await countTo(main, 10, 2);
  await modify(LISTENER, '2');
  await countTo(main, 0, 2);
  await modify(LISTENER, '');
  await countTo(main, 10, 2);
  for (const connection of early) connection!.destroy();
  await baton.waitForStat('server.total_connections', 0);
});

t.test('the global limit applies to listeners that do not ignore it', async (t) => {
  await modify(GLOBAL, '4');
  await countTo(main, 4, 0);
  const held = await Promise.all([connect(main), connect(other)]);
  t.ok(held.every((connection) => connection !== undefined));
  await countTo(other, 2, 2);
  t.equal(await served(exempt, 2), 10);
  t.ok((await baton.stat('listener.other.downstream_global_cx_overflow'))! >= 8);
  for (const connection of held) connection!.destroy();
});
