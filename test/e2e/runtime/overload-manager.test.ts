// overload_manager with a monitor of downstream connections: one limit for all listeners and workers, which runtime cannot
// change.

import t from 'tap';
import { bootstrap, connectRaw, httpListener, type RawConnection, startBaton, waitFor } from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

const MONITOR = 'envoy.resource_monitors.global_downstream_max_connections';
const manager = managerOf([answering({ prefix: '/' }, 'served')]);

const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      httpListener('main', 0, manager),
      httpListener('other', 0, manager),
      { ...httpListener('exempt', 0, manager), ignore_global_conn_limit: true },
      { ...httpListener('bypassing', 0, manager), bypass_overload_manager: true },
    ],
    clusters: [],
    extra: {
      layered_runtime: { layers: [{ name: 'admin', admin_layer: {} }] },
      overload_manager: {
        refresh_interval: '0.25s',
        resource_monitors: [
          {
            name: MONITOR,
            typed_config: {
              '@type':
                'type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig',
              max_active_downstream_connections: 3,
            },
          },
        ],
      },
    },
  }),
  args: ['-l', 'warning', '--concurrency', '2'],
});
const ports = {
  main: await baton.listenerPort('main'),
  other: await baton.listenerPort('other'),
  exempt: await baton.listenerPort('exempt'),
  bypassing: await baton.listenerPort('bypassing'),
};

t.test('the stats exist before anything is refused', async (t) => {
  t.equal(await baton.stat(`overload.${MONITOR}.failed_updates`), 0);
});

t.test('connections above the limit are closed and counted, on every listener and worker', async (t) => {
  const held = await Promise.all([connect(ports.main), connect(ports.main), connect(ports.other)]);
  t.ok(held.every(isServed));
  const more = await Promise.all([connect(ports.main), connect(ports.other), connect(ports.other)]);
  t.notOk(more.some(isServed));
  await baton.waitForStats({
    [`overload.${MONITOR}.failed_updates`]: 3,
    'listener.main.downstream_global_cx_overflow': 1,
    'listener.other.downstream_global_cx_overflow': 2,
  });
  const exempt = await connect(ports.exempt);
  t.ok(isServed(exempt), 'a listener that ignores the limit is served');
  exempt.destroy();
  const bypassing = await connect(ports.bypassing);
  t.ok(isServed(bypassing), 'and one that bypasses the overload manager, as in Envoy');
  bypassing.destroy();
  held[0]!.destroy();
  await waitFor(async () => isServed(await connect(ports.other)), { what: 'the slot of a closed connection' });
});

t.test('the runtime key has no effect on listeners, which is logged once', async (t) => {
  for (const connection of open.splice(0)) connection.destroy();
  await baton.waitForStat('server.total_connections', 0);
  for (const limit of [1, 2, 1]) {
    await baton.admin(`/runtime_modify?overload.global_downstream_max_connections=${limit}`, { method: 'POST' });
  }
  await waitFor(async () => (await Promise.all([connect(ports.main), connect(ports.other)])).every(isServed), {
    what: 'two connections at once',
  });
  t.equal(baton.stderr.split('overload.global_downstream_max_connections').length, 2);
  t.match(baton.stderr, /\[warning\].*overload_manager/);
});

const open: RawConnection[] = [];

/** Opens a connection that has been answered, or closed. */
async function connect(port: number): Promise<RawConnection> {
  const connection = await connectRaw(t, port);
  open.push(connection);
  connection.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await waitFor(() => isServed(connection) || connection.closed !== 'open', { what: 'a response or the close' });
  return connection;
}

function isServed(connection: RawConnection): boolean {
  return connection.received.includes('served');
}
