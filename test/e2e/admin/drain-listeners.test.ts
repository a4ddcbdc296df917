// POST /drain_listeners: listeners stop on all workers at once, and existing connections continue.

import t from 'tap';
import {
  bootstrap,
  connectRaw,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startEchoUpstream,
  staticCluster,
  waitFor,
} from '../harness/index.js';

const echo = await startEchoUpstream(t);
const manager = { route_config: routeAllTo('echo') };
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      { ...httpListener('in', 0, manager), traffic_direction: 'INBOUND' },
      { ...httpListener('shared', 0, manager), traffic_direction: 'INBOUND', enable_reuse_port: false },
      { ...httpListener('out', 0, manager), traffic_direction: 'OUTBOUND' },
    ],
    clusters: [staticCluster('echo', echo.port)],
  }),
  args: ['-l', 'warning', '--concurrency', '2'],
});
const ports = {
  in: await baton.listenerPort('in'),
  shared: await baton.listenerPort('shared'),
  out: await baton.listenerPort('out'),
};

const drain = (query = '') => baton.admin(`/drain_listeners${query}`, { method: 'POST' });
const isOpen = (port: number) =>
  httpRequest(port, '/').then(
    ({ status }) => status === 200,
    () => false,
  );

t.test('invalid requests are refused, and no listener stops', async (t) => {
  t.match(await baton.admin('/drain_listeners'), { status: 400 });
  t.match(await drain('?skip_exit'), { status: 400, body: 'skip_exit requires graceful\n' });

  for (const port of Object.values(ports)) t.ok(await isOpen(port));
  t.equal(await baton.stat('listener_manager.listener_stopped'), 0);
});

t.test('inboundonly stops listeners for inbound traffic, and their connections stay', async (t) => {
  const connections = await Promise.all(Array.from({ length: 8 }, () => connectRaw(t, ports.in)));
  const ask = async () => {
    for (const connection of connections) {
      const before = connection.received.length;
      connection.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
      await waitFor(() => connection.received.indexOf('HTTP/1.1 200', before) >= 0, { what: 'a response' });
    }
  };
  await ask();
  t.match(await drain('?inboundonly'), { status: 200, body: 'OK\n' });
  for (let attempt = 0; attempt < 10; attempt++) {
    t.notOk(await isOpen(ports.in));
    t.notOk(await isOpen(ports.shared));
  }
  t.ok(await isOpen(ports.out));
  await ask();
  t.equal(await baton.stat('listener_manager.listener_stopped'), 2);
  t.match(await drain('?inboundonly'), { status: 200 });
  t.equal(await baton.stat('listener_manager.listener_stopped'), 2, 'each stops once');
});

t.test('without inboundonly all listeners stop, and the server stays up', async (t) => {
  t.match(await drain(), { status: 200, body: 'OK\n' });
  t.notOk(await isOpen(ports.out));
  t.equal(await baton.stat('listener_manager.listener_stopped'), 3);
  t.match(await baton.admin('/ready'), { status: 200, body: 'LIVE\n' });
});
