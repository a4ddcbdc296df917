// Health checks of a thousand hosts, and of a process that takes over from its parent.

import t from 'tap';
import { bootstrap, httpListener, loopback, routeAllTo, startTcpUpstream, waitFor } from '../harness/index.js';
import { Epochs } from '../restart/epochs.js';
import { answers, CheckedUpstream, checked, flags, http, startWith } from './checked-upstream.js';

t.test('a thousand hosts are checked while the admin interface answers', async (t) => {
  let checks = 0;
  const host = await startTcpUpstream(t, (socket) => {
    checks++;
    socket.on('end', () => socket.end());
  });
  // All of 127.0.0.0/8 is local; the single socket listens on 127.0.0.1 only, so the endpoints are checked there.
  const lb_endpoints = Array.from({ length: 1000 }, (_, index) => ({
    endpoint: {
      address: { socket_address: { address: `127.1.${index >> 8}.${index & 255}`, port_value: 80 } },
      health_check_config: { address: loopback(host.port) },
    },
  }));
  const cluster = checked('api', [], { tcp_health_check: {}, interval: '1s', no_traffic_interval: '1s' });
  const baton = await startWith(t, {
    ...cluster,
    load_assignment: { cluster_name: 'api', endpoints: [{ lb_endpoints }] },
  });
  t.equal(await baton.stat('cluster.api.health_check.healthy'), 1000);
  await waitFor(async () => (await baton.admin('/ready')).status === 200 && checks > 3000);
  t.equal(await baton.stat('cluster.api.membership_healthy'), 1000);
});

t.test('the child of a hot restart checks its hosts before it takes over', async (t) => {
  const [a, b] = await Promise.all([CheckedUpstream.start(t, 'a'), CheckedUpstream.start(t, 'b')]);
  const epochs = new Epochs(t, {
    config: bootstrap({
      listeners: [httpListener('http', 0, { route_config: routeAllTo('api') })],
      clusters: [checked('api', [a.port, b.port], http())],
    }),
    args: ['--parent-shutdown-time-s', '1', '--drain-time-s', '1'],
  });
  await epochs.next(1);
  b.answer = { status: 503 };
  await epochs.current.waitForStat('cluster.api.membership_healthy', 1);
  await epochs.next(1);
  t.same(await flags(epochs.current), { [a.port]: 'healthy', [b.port]: '/failed_active_hc' });
  t.equal(await epochs.current.stat('cluster.api.health_check.healthy'), 1, 'counted by this process alone');
  t.same(await answers(epochs.current), ['a']);
});
