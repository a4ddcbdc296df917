// Statsd servers receive every count exactly once, through failures and restarts.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { bootstrap, loopback, startBaton, staticCluster, tempDir, waitFor } from '../harness/index.js';
import { startTcpPeer, startUdpPeer, startUnixAgent, startUnixPeer } from './line-peers.js';
import { startSinkProxy } from './sink-proxy.js';

const STATSD = 'type.googleapis.com/envoy.config.metrics.v3.StatsdSink';
const DOG = 'type.googleapis.com/envoy.config.metrics.v3.DogStatsdSink';
const REQUESTS = 'cluster.host.upstream_rq_total';

t.test('UDP: deltas add up to the total, even after a reset', async (t) => {
  const peer = await startUdpPeer(t);
  const { baton, request } = await startSinkProxy(t, [{ '@type': STATSD, address: loopback(peer.port) }]);
  await request(7);
  await waitFor(() => peer.lines.sum(`envoy.${REQUESTS}`) === 7, { what: '7 requests' });
  await waitFor(() => peer.lines.sum('envoy.cluster.host.upstream_rq_200') === 7, {
    what: 'a stat created by traffic',
  });
  t.equal((await baton.admin('/reset_counters', { method: 'POST' })).status, 200);
  await request(3);
  await waitFor(() => peer.lines.sum(`envoy.${REQUESTS}`) === 10, { what: '10 requests in total' });
  const sent = peer.lines.values(`envoy.${REQUESTS}`, '|c').length;
  await waitFor(() => peer.lines.values(`envoy.${REQUESTS}`, '|c').length > sent + 3, { what: 'further flushes' });
  t.equal(peer.lines.sum(`envoy.${REQUESTS}`), 10, 'nothing is counted twice');
  t.same(peer.lines.values('envoy.server.live', '|g').at(-1), 1, 'gauges are sent with their values');
  t.equal(
    peer.lines.values('envoy.cluster.host.upstream_cx_length_ms', '|ms').length +
      peer.lines.values('envoy.cluster.host.upstream_cx_connect_ms', '|ms').length >
      0,
    true,
    'histograms are sent as samples',
  );
  t.equal(peer.lines.values('envoy.cluster.host.upstream_rq_time', '|ms').length, 10, 'one line per sample');
  t.same(
    peer.lines.all.filter((line) => line.includes('.endpoint.')),
    [],
    'hidden stats are not sent',
  );
  t.notOk(
    peer.lines.all.some((line) => line.startsWith('envoy.cluster.host.upstream_rq_timeout:')),
    'neither are unused stats',
  );
  await baton.stop();
});

t.test('UDP: a restarted server misses only the flushes while it was down', async (t) => {
  const first = await startUdpPeer(t);
  const { baton, request } = await startSinkProxy(t, [
    { '@type': STATSD, address: loopback(first.port), prefix: 'edge' },
  ]);
  await request(2);
  await waitFor(() => first.lines.sum(`edge.${REQUESTS}`) === 2, { what: '2 requests' });
  await first.close();
  await waitFor(() => baton.stderr.includes('accepts no stats: connection refused'), { what: 'the log entry' });
  const second = await startUdpPeer(t, first.port);
  await waitFor(() => second.lines.all.length > 0, { what: 'lines again' });
  await request(4);
  await waitFor(() => second.lines.sum(`edge.${REQUESTS}`) === 4, { what: '4 requests' });
  await waitFor(() => baton.stderr.includes('accepts stats again'), { what: 'the log entry' });
  t.equal(baton.stderr.split('accepts no stats').length - 1, 1, 'once');
});

t.test('Unix datagrams: lines are packed up to the limit; the agent may be restarted', async (t) => {
  const path = join(tempDir(t), 'agent');
  const first = startUnixPeer(t, path);
  const { baton, request } = await startSinkProxy(t, [
    { '@type': DOG, address: { pipe: { path } }, prefix: 'dog', max_bytes_per_datagram: '1000' },
  ]);
  await request(2);
  await waitFor(() => first.lines.all.some((line) => line.includes('upstream_rq_total')), { what: 'lines' });
  t.ok(
    first.datagrams.every((datagram) => datagram.length <= 1000),
    'no datagram is larger',
  );
  t.ok(
    first.datagrams.some((datagram) => datagram.includes('\n')),
    'several lines share one',
  );
  first.close();
  rmSync(path);
  await waitFor(() => baton.stderr.includes('accepts no stats'), { what: 'the log entry' });
  t.equal((await baton.admin('/ready')).status, 200);
  const second = startUnixPeer(t, path);
  await waitFor(() => second.lines.all.length > 0, { what: 'lines again' });
  await baton.stop();
});

t.test('Unix datagrams: a fast receiver gets a large flush completely', async (t) => {
  const path = join(tempDir(t), 'agent');
  const agent = startUnixPeer(t, path);
  // Some 40 lines per flush each.
  const clusters = Array.from({ length: 150 }, (_, i) => staticCluster(`c${i}`, 1));
  const { baton, request } = await startSinkProxy(t, [{ '@type': DOG, address: { pipe: { path } } }], {
    clusters,
    extra: { stats_flush_interval: '0.5s' },
  });
  for (let done = 0; done < 30; done += 10) {
    await request(10);
    const name = 'envoy.cluster.upstream_rq_total';
    const what = `${done + 10} requests`;
    await waitFor(() => agent.lines.sum(name, '|c|#envoy.cluster_name:host') === done + 10, { what });
  }
  const gauge = /^envoy\.cluster\.membership_total:1\|g\|#envoy\.cluster_name:c\d+$/;
  t.equal(new Set(agent.lines.all.filter((line) => gauge.test(line))).size, clusters.length);
  t.notMatch(baton.stderr, 'accepts no stats');
  await baton.stop();
});

t.test('UDP: a datagram limit above the largest possible datagram works', async (t) => {
  const peer = await startUdpPeer(t);
  // Some 40 lines per flush each.
  const clusters = Array.from({ length: 150 }, (_, i) => staticCluster(`c${i}`, 1));
  const sink = { '@type': DOG, address: loopback(peer.port), max_bytes_per_datagram: '1000000' };
  const { baton, request } = await startSinkProxy(t, [sink], { clusters, extra: { stats_flush_interval: '0.5s' } });
  await request(3);
  const name = 'envoy.cluster.upstream_rq_total';
  await waitFor(() => peer.lines.sum(name, '|c|#envoy.cluster_name:host') === 3, { what: '3 requests' });
  await baton.stop();
  t.notMatch(baton.stderr, 'accepts no stats');
});

t.test('a stalled receiver loses lines of its own sink, and no other sink loses any', async (t) => {
  const path = join(tempDir(t), 'agent');
  const agent = await startUnixAgent(t, path);
  agent.kill('SIGSTOP');
  const peer = await startUdpPeer(t);
  const { baton, request } = await startSinkProxy(t, [
    { '@type': DOG, address: { pipe: { path } } },
    { '@type': STATSD, address: loopback(peer.port) },
  ]);
  await request(5);
  await waitFor(() => peer.lines.sum(`envoy.${REQUESTS}`) === 5, { what: 'all lines at the other sink' });
  await waitFor(() => baton.stderr.includes('accepts no stats: its queue is full'), { what: 'the log entry' });
  t.equal((await baton.admin('/ready')).status, 200);
  agent.kill('SIGCONT');
  await waitFor(() => baton.stderr.includes('accepts stats again'), { what: 'the log entry' });
  await baton.stop();
});

t.test('a flush that is due while the previous one is being sent is dropped and counted', async (t) => {
  const peer = await startUdpPeer(t);
  // A datagram for each of these gauges takes longer than the interval.
  const clusters = Array.from({ length: 200 }, (_, index) => staticCluster(`unused-${index}`, 9));
  const extra = { stats_flush_interval: '0.001s' };
  const sinks = [{ '@type': DOG, address: loopback(peer.port) }];
  const { baton } = await startSinkProxy(t, sinks, { clusters, extra });
  const dropped = async () => (await baton.stat('server.dropped_stat_flushes'))!;
  await waitFor(async () => (await dropped()) > 0, { what: 'a dropped flush' });
  const flushes = () => peer.lines.all.filter((line) => line.startsWith('envoy.server.live:')).length;
  const before = flushes();
  await waitFor(() => flushes() > before + 1, { what: 'further flushes' });
  await baton.stop();
});

t.test('tags are formatted for DogStatsD and Graphite', async (t) => {
  const dog = await startUdpPeer(t);
  const graphite = await startUdpPeer(t);
  const { baton, request } = await startSinkProxy(t, [
    { '@type': DOG, address: loopback(dog.port) },
    {
      '@type': 'type.googleapis.com/envoy.extensions.stat_sinks.graphite_statsd.v3.GraphiteStatsdSink',
      address: loopback(graphite.port),
      max_bytes_per_datagram: '1400',
    },
  ]);
  await request(3);
  const name = 'envoy.cluster.upstream_rq_total';
  await waitFor(() => dog.lines.sum(name, '|c|#envoy.cluster_name:host') === 3, { what: '3 requests' });
  await waitFor(() => graphite.lines.sum(`${name};envoy.cluster_name=host`) === 3, { what: '3 requests' });
  t.ok(
    dog.datagrams.every((datagram) => !datagram.includes('\n')),
    'one metric per datagram by default',
  );
  t.ok(
    graphite.datagrams.some((datagram) => datagram.includes('\n')),
    'several metrics per datagram where configured',
  );
  await baton.stop();
});

t.test('TCP over a cluster: the connection counts in its stats, and is reopened when it breaks', async (t) => {
  const first = await startTcpPeer(t);
  const { baton, request } = await startSinkProxy(t, [{ '@type': STATSD, tcp_cluster_name: 'metrics' }], {
    clusters: [staticCluster('metrics', first.port)],
  });
  await request(5);
  await waitFor(() => first.lines.sum(`envoy.${REQUESTS}`) === 5, { what: '5 requests' });
  t.equal(await baton.stat('cluster.metrics.upstream_cx_active'), 1);
  t.ok((await baton.stat('cluster.metrics.upstream_cx_tx_bytes_total'))! > 0);
  await first.close();
  await waitFor(async () => (await baton.stat('cluster.metrics.upstream_cx_connect_fail'))! > 0, { what: 'failures' });
  t.equal((await baton.admin('/ready')).status, 200);
  const second = await startTcpPeer(t, first.port);
  await waitFor(() => second.lines.all.length > 0, { what: 'lines again' });
  await request(2);
  await waitFor(() => second.lines.sum(`envoy.${REQUESTS}`) === 2, { what: '2 requests' });
  t.ok(
    second.lines.all.every((line) => /^envoy\.[^:]+:[0-9.]+\|(c|g|ms|h)(\|@[0-9.e-]+)?$/.test(line)),
    'every line is complete',
  );
  await baton.stop();
});

t.test('TCP over a missing cluster is refused with its position', async (t) => {
  const sink = { name: 'statsd', typed_config: { '@type': STATSD, tcp_cluster_name: 'metrix' } };
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [], clusters: [staticCluster('metrics', 1)], extra: { stats_sinks: [sink] } }),
    args: ['--mode', 'validate'],
    wait: 'spawned',
  });
  t.match(await baton.exited, { code: 1 });
  t.match(
    baton.stderr,
    /config\.yaml:\d+:\d+: stats_sinks\[0\]\.typed_config\.tcp_cluster_name: .*'metrix'.*'metrics'/,
  );
});

t.test('a server that accepts and never reads blocks nothing', async (t) => {
  const deaf = await startTcpPeer(t, 0, true);
  const peer = await startUdpPeer(t);
  const { baton, request } = await startSinkProxy(
    t,
    [
      { '@type': STATSD, tcp_cluster_name: 'deaf' },
      { '@type': STATSD, address: loopback(peer.port) },
    ],
    { clusters: [staticCluster('deaf', deaf.port)] },
  );
  await waitFor(() => deaf.sockets.length > 0, { what: 'a connection' });
  await request(3);
  await waitFor(() => peer.lines.sum(`envoy.${REQUESTS}`) === 3, { what: 'all lines at the other sink' });
  t.equal((await baton.admin('/ready')).status, 200);
  await baton.stop();
});

t.test('counts since the last flush are sent when the server exits', async (t) => {
  const path = join(tempDir(t), 'agent');
  const agent = startUnixPeer(t, path);
  const udp = await startUdpPeer(t);
  const tcp = await startTcpPeer(t);
  const { baton, request } = await startSinkProxy(
    t,
    [
      { '@type': STATSD, address: loopback(udp.port) },
      { '@type': STATSD, address: { pipe: { path } } },
      { '@type': STATSD, tcp_cluster_name: 'metrics' },
    ],
    // So many that they are not sent in one turn.
    {
      clusters: [
        staticCluster('metrics', tcp.port),
        ...Array.from({ length: 300 }, (_, i) => staticCluster(`c${i}`, 1)),
      ],
      extra: { stats_flush_interval: '60s' },
    },
  );
  await request(5);
  await baton.stop();
  for (const { lines } of [udp, agent, tcp]) {
    await waitFor(() => lines.sum(`envoy.${REQUESTS}`) === 5, { what: '5 requests' });
    t.ok(lines.sum('envoy.cluster.host.upstream_cx_total') > 0);
    t.equal(
      lines.sum('envoy.cluster.host.upstream_cx_destroy'),
      lines.sum('envoy.cluster.host.upstream_cx_total'),
      'the last counts of workers are included',
    );
  }
  await waitFor(() => tcp.lines.values('envoy.cluster.c299.membership_total', '|g').length === 1, {
    what: 'the last line',
  });
});
