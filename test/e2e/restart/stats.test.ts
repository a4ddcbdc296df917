// Stats continue across a restart: nothing is counted twice or lost.

import t from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  EpochLine,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  routeAllTo,
  startUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { type GrpcPeer, startCollector } from '../stats-sinks/grpc-peers.js';
import { startStatsd } from './counting-statsd.js';

const CLUSTER = 'envoy.config.cluster.v3.Cluster';
const LONG = ['--parent-shutdown-time-s', '60', '--drain-time-s', '60'];

async function requests(port: number, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await httpRequest(port);
}

t.test('stats of virtual clusters and routes continue', async (t) => {
  const upstream = await startUpstream(t, (_request, response) => void response.end());
  const virtual_clusters = [{ name: 'posts', headers: [{ name: ':method', string_match: { exact: 'POST' } }] }];
  const routes = [{ match: { prefix: '/' }, stat_prefix: 'all', route: { cluster: 'host' } }];
  const route_config = { name: 'r', virtual_hosts: [{ name: 'v', domains: ['*'], virtual_clusters, routes }] };
  const config = bootstrap({
    listeners: [httpListener('web', 0, { route_config })],
    clusters: [staticCluster('host', upstream.port)],
  });
  const line = new EpochLine(t);
  const parent = await line.start(0, { config, args: LONG });
  const port = await parent.listenerPort('web');
  await requests(port, 3);
  await httpRequest(port, '/', { method: 'POST' });
  await parent.waitForStat('vhost.v.route.all.upstream_rq_200', 4);
  const child = await line.start(1, { config, args: LONG });
  await child.waitForStats({
    'vhost.v.route.all.upstream_rq_total': 4,
    'vhost.v.route.all.upstream_rq_200': 4,
    'vhost.v.vcluster.posts.upstream_rq_total': 1,
    'vhost.v.vcluster.other.upstream_rq_total': 3,
  });
});

t.test(
  "counters continue from the parent's values, with its last requests; gauges are summed while it lives",
  async (t) => {
    let answer = () => {};
    const upstream = await startUpstream(t, (request, response) => {
      if (request.url === '/slow') answer = () => response.end('slow');
      else response.writeHead(request.url === '/teapot' ? 418 : 200).end();
    });
    const configure = (cluster: string): Config =>
      bootstrap({
        listeners: [httpListener('web', 0, { route_config: routeAllTo(cluster) })],
        clusters: [staticCluster(cluster, upstream.port)],
        extra: { stats_flush_interval: '0.1s' },
      });
    const line = new EpochLine(t);
    const parent = await line.start(0, { config: configure('old'), args: LONG });
    const port = await parent.listenerPort('web');
    await requests(port, 5);
    await httpRequest(port, '/teapot');
    const slow = httpRequest(port, '/slow');
    await parent.waitForStat('http.web.downstream_rq_active', 1);

    const child = await line.start(1, { config: configure('new'), args: LONG });
    await child.waitForStat('http.web.downstream_rq_total', 7);
    await child.waitForStat('http.web.downstream_rq_active', 1);
    await child.waitForStat('server.parent_connections', 1);
    await child.waitForStat('server.total_connections', 1);
    t.equal(await child.stat('http.web.downstream_rq_4xx'), 1);
    t.equal(
      await child.stat('cluster.old.upstream_rq_418'),
      1,
      'names that only the parent has are shown while it lives',
    );
    await requests(port, 3);
    await child.waitForStat('http.web.downstream_rq_total', 10);

    answer();
    t.equal((await slow).body, 'slow');
    await child.waitForStat('http.web.downstream_rq_active', 0);
    await child.waitForStat('http.web.downstream_rq_2xx', 9);
    t.equal(await child.stat('http.web.downstream_rq_completed'), 10);
    const info = JSON.parse((await child.admin('/server_info')).body);
    t.ok(seconds(info.uptime_all_epochs) >= seconds(info.uptime_current_epoch));
    t.equal(info.command_line_options.restart_epoch, 1);

    await end(parent);
    await child.waitForStat('server.parent_connections', 0);
    await waitFor(async () => (await child.stat('cluster.old.upstream_rq_418')) === undefined);
    t.equal(await child.stat('http.web.downstream_rq_total'), 10);
    await child.stop();
  },
);

t.test('the gauges of a killed parent are removed', async (t) => {
  const { line, config, parent, port } = await startParent(t, { stats_flush_interval: '0.1s' });
  const client = await connectRaw(t, port);
  client.write('GET / HTTP/1.1\r\nhost: a\r\n');
  await parent.waitForStat('http.web.downstream_cx_active', 1);
  const child = await line.start(1, { config, args: LONG });
  await child.waitForStat('server.parent_connections', 1);
  await child.waitForStat('http.web.downstream_cx_active', 1);
  await parent.kill();
  await child.waitForStat('http.web.downstream_cx_active', 0);
  await child.waitForStat('server.parent_connections', 0);
  await child.stop();
});

t.test(
  'the last requests of a parent are counted by its child, without any request for stats in between',
  async (t) => {
    const { line, config, parent, port } = await startParent(t, { stats_flush_interval: '299s' });
    await requests(port, 4);
    const child = await line.start(1, { config, args: LONG });
    await requests(port, 2);
    await end(parent);
    await child.waitForStat('http.web.downstream_rq_total', 6);
    t.equal(await child.stat('cluster.up.upstream_rq_200'), 6, 'a stat created by traffic');
    await child.stop();
  },
);

t.test(
  'counters of local rate limits, which belong to no part of the configuration, stay when the parent is gone',
  async (t) => {
    const upstream = await startUpstream(t, (_request, response) => void response.end());
    const all = { default_value: { numerator: 100 } };
    const limit = {
      name: 'limit',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit',
        stat_prefix: 'lim',
        token_bucket: { max_tokens: 1000, fill_interval: '600s' },
        ...{ filter_enabled: all, filter_enforced: all },
      },
    };
    const configure = (cluster: string): Config =>
      bootstrap({
        listeners: [
          httpListener('web', 0, { route_config: routeAllTo(cluster), http_filters: [limit, ROUTER_FILTER] }),
        ],
        clusters: [staticCluster(cluster, upstream.port)],
        extra: { stats_flush_interval: '0.1s' },
      });
    const line = new EpochLine(t);
    const parent = await line.start(0, { config: configure('old'), args: LONG });
    const port = await parent.listenerPort('web');
    await requests(port, 3);
    const child = await line.start(1, { config: configure('new'), args: LONG });
    await child.waitForStat('lim.http_local_rate_limit.ok', 3);
    await requests(port, 2);
    await end(parent);
    await waitFor(async () => (await child.stat('cluster.old.upstream_rq_200')) === undefined);
    t.equal(await child.stat('lim.http_local_rate_limit.ok'), 5);
    await child.stop();
  },
);

t.test("the first stats of a child include the parent's counts: no counter ever decreases", async (t) => {
  const { line, config, parent, port } = await startParent(t, { stats_flush_interval: '299s' });
  await requests(port, 50);
  const adminPort = parent.adminPort;
  const seen: number[] = [];
  const look = async () => {
    const { body } = await httpRequest(adminPort, '/stats?filter=^http.web.downstream_rq_total$');
    seen.push(Number(/: (\d+)/.exec(body)?.[1]));
  };
  const child = await line.start(1, { config: fixedAdmin(config, adminPort), args: LONG, wait: 'spawned' });
  await waitFor(async () => {
    await look();
    return parent.stderr.includes('shutting down admin due to child startup');
  });
  for (let count = 0; count < 20; count++) await look();
  t.equal(JSON.parse((await httpRequest(adminPort, '/server_info')).body).command_line_options.restart_epoch, 1);
  t.same([...new Set(seen)], [50]);
  await child.stop();
});

t.test('--skip-hot-restart-parent-stats: the child counts from 0', async (t) => {
  const { line, config, parent, port } = await startParent(t, { stats_flush_interval: '0.1s' });
  await requests(port, 4);
  const child = await line.start(1, { config, args: [...LONG, '--skip-hot-restart-parent-stats'] });
  await waitFor(async () => {
    await httpRequest(port);
    return ((await child.stat('http.web.downstream_rq_total')) ?? 0) > 0;
  });
  await end(parent);
  t.ok((await child.stat('http.web.downstream_rq_total'))! < 4);
  t.equal(await child.stat('server.hot_restart_generation'), 2);
  await child.stop();
});

t.test('circuit breaker stats include parent and child, each with its part', async (t) => {
  const upstream = await startUpstream(t, () => {});
  const limited = staticCluster('limited', upstream.port, {
    circuit_breakers: { thresholds: [{ max_requests: 1, max_connections: 5, track_remaining: true }] },
  });
  const config = bootstrap({
    listeners: [httpListener('web', 0, { route_config: routeAllTo('limited') })],
    clusters: [limited],
    extra: { stats_flush_interval: '0.1s' },
  });
  const line = new EpochLine(t);
  const parent = await line.start(0, { config, args: LONG });
  const port = await parent.listenerPort('web');
  const breaker = 'cluster.limited.circuit_breakers.default';
  const request = async () => {
    const client = await connectRaw(t, port);
    client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    return client;
  };
  const first = await request();
  await parent.waitForStat(`${breaker}.rq_open`, 1);
  const child = await line.start(1, { config, args: LONG });
  const both = async () => [await child.stat(`${breaker}.rq_open`), await child.stat(`${breaker}.remaining_cx`)];
  await waitFor(async () => (await both()).join() === '1,9', { what: "the parent's part" });
  t.same(await both(), [1, 9], 'unchanged');
  const second = await request();
  await waitFor(async () => (await both()).join() === '2,8', { what: "the child's part" });
  first.destroy();
  await waitFor(async () => (await both()).join() === '1,9', { what: 'the end of the request in the parent' });
  await end(parent);
  await waitFor(async () => (await both()).join() === '1,4', { what: 'the exit of the parent' });
  second.destroy();
  await waitFor(async () => (await both()).join() === '0,5', { what: 'the last request to finish' });
  await child.stop();
});

t.test('stats sinks of parent and child together receive each count once', async (t) => {
  const sums = new Map<string, number>();
  const sink = await startStatsd(t, sums);
  const { line, config, parent, port } = await startParent(t, { stats_flush_interval: '0.1s', stats_sinks: [sink] });
  const sum = () => sums.get('p.http.web.downstream_rq_total') ?? 0;
  let current = parent;
  await requests(port, 5);
  await waitFor(() => sum() === 5, { what: "the parent's counts" });
  for (const epoch of [1, 2]) {
    await requests(port, 3);
    const next = await line.start(epoch, { config, args: LONG });
    await requests(port, 2);
    await end(current);
    await waitFor(() => sum() === 5 + 5 * epoch, { what: `${5 + 5 * epoch} requests, not ${sum()}` });
    current = next;
  }
  t.equal(await current.stat('http.web.downstream_rq_total'), 15);
  await current.stop();
  t.equal(sum(), 15);
});

t.test("totals reported by a child have the parent's start time", async (t) => {
  const collector = await startCollector(t);
  const sink = {
    name: 'collector',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig',
      grpc_service: { google_grpc: { target_uri: `127.0.0.1:${collector.port}`, stat_prefix: 'otlp' } },
      use_tag_extracted_name: false,
    },
  };
  const { line, config, parent, port } = await startParent(t, { stats_flush_interval: '0.1s', stats_sinks: [sink] });
  const total = (count: number) =>
    waitFor(() => totalsOf(collector, 'http.web.downstream_rq_total').find(({ as_int }) => as_int === count), {
      what: `${count} requests`,
    });
  await requests(port, 3);
  const before = await total(3);
  const child = await line.start(1, { config, args: LONG });
  await end(parent);
  await requests(port, 2);
  const after = await total(5);
  t.ok(after.start_time_unix_nano < before.time_unix_nano);
  await child.stop();
});

t.test("a cluster that a child discovers later continues from its parent's counts, once in every output", async (t) => {
  const sums = new Map<string, number>();
  const sink = await startStatsd(t, sums);
  const sum = () => sums.get('p.cluster.dyn.upstream_rq_total') ?? 0;
  const upstream = await startUpstream(t, (_request, response) => response.end());
  const directory = tempDir(t);
  const setUp = (name: string) => {
    const clusters = new ResourceFile(directory, name);
    const manager = { route_config: { ...routeAllTo('dyn'), validate_clusters: false } };
    const config = bootstrap({
      listeners: [httpListener('web', 0, manager)],
      clusters: [],
      extra: {
        dynamic_resources: { cds_config: clusters.source },
        stats_flush_interval: '0.1s',
        stats_sinks: [sink],
      },
    });
    return { clusters, config };
  };
  const cluster = staticCluster('dyn', upstream.port);
  const line = new EpochLine(t);
  const [first, second] = [setUp('first'), setUp('second')];
  first.clusters.write(CLUSTER, cluster);
  second.clusters.write(CLUSTER);
  const parent = await line.start(0, { config: first.config, args: LONG });
  const port = await parent.listenerPort('web');
  await requests(port, 5);
  await waitFor(() => sum() === 5, { what: "the parent's counts" });
  const child = await line.start(1, { config: second.config, args: LONG });
  t.equal(await child.stat('cluster.dyn.upstream_rq_total'), 5, "without the cluster it shows the parent's counts");
  second.clusters.write(CLUSTER, cluster);
  await waitFor(async () => (await httpRequest(port)).status === 200, { what: 'the cluster' });
  const asked = await child.stat('cluster.dyn.upstream_rq_total');
  t.equal(asked, 6);
  const samples = async (name: string) =>
    (await child.admin('/stats')).body.split('\n').filter((each) => each.startsWith(`${name}: `));
  for (const name of ['upstream_rq_total', 'upstream_rq_200', 'upstream_cx_active', 'membership_healthy'])
    t.equal((await samples(`cluster.dyn.${name}`)).length, 1, `${name} once`);
  t.equal(await child.stat('cluster.dyn.upstream_rq_200'), 6);
  await child.waitForStat('cluster.dyn.upstream_cx_active', 2);
  await end(parent);
  await child.waitForStat('cluster.dyn.upstream_cx_active', 1);
  await requests(port, 3);
  await child.waitForStat('cluster.dyn.upstream_rq_total', 9);
  await waitFor(() => sum() >= 9, { what: "the child's counts" });
  await child.stop();
  t.equal(sum(), 9);
});

/** Starts the first epoch before a host that answers at once. `extra`: merged into its bootstrap. */
async function startParent(t: Teardown, extra: Config) {
  const line = new EpochLine(t);
  const upstream = await startUpstream(t, (_request, response) => response.end());
  const config = bootstrap({
    listeners: [httpListener('web', 0, { route_config: routeAllTo('up') })],
    clusters: [staticCluster('up', upstream.port)],
    extra,
  });
  const parent = await line.start(0, { config, args: LONG });
  return { line, config, parent, port: await parent.listenerPort('web') };
}

async function end(parent: BatonProcess): Promise<void> {
  parent.child.kill('SIGTERM');
  await waitFor(() => parent.exit !== undefined, { what: 'the exit of the parent' });
}

interface Total {
  readonly as_int: number;
  readonly start_time_unix_nano: number;
  readonly time_unix_nano: number;
}

/** Returns the totals of a counter that a collector received. */
function totalsOf({ messages }: GrpcPeer, name: string): readonly Total[] {
  type Metric = { readonly name: string; readonly sum?: { readonly data_points: readonly Total[] } };
  type Scopes = { readonly scope_metrics: readonly { readonly metrics?: readonly Metric[] }[] };
  return messages
    .flatMap((message) => message['resource_metrics'] as Scopes[])
    .flatMap((each) => each.scope_metrics)
    .flatMap((scope) => scope.metrics ?? [])
    .flatMap((metric) => (metric.name === name ? (metric.sum?.data_points ?? []) : []));
}

/** Returns the configuration with the admin interface on the parent's port. */
function fixedAdmin(config: Config, port: number): Config {
  return { ...config, admin: { address: { socket_address: { address: '127.0.0.1', port_value: port } } } };
}

function seconds(text: string): number {
  return Number(/^(\d+)s$/.exec(text)![1]);
}
