// Clusters and endpoints from files change while requests are in flight: none of them fails.

import t from 'tap';
import { SteadyClient } from '../draining/steady-client.js';
import { ResourceFile } from '../dynamic/resource-file.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  httpListener,
  httpRequest,
  loopback,
  startBaton,
  startBlackHole,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';

const directory = tempDir(t);
const cds = new ResourceFile(directory, 'cds');
const assigned = new ResourceFile(directory, 'eds');
/**
 * Each answers with its own name; /hang is held until the test releases it, and so is /fail, which host a answers with an
 * error.
 */
const hanging: (() => void)[] = [];
let failsAtOnce = false;
const upstreams = await Promise.all(
  ['a', 'b', 'c'].map((name) =>
    startUpstream(t, (request, response) => {
      const fail = () => response.writeHead(503).end();
      if (request.url === '/fail' && name === 'a') failsAtOnce ? fail() : hanging.push(fail);
      else if (request.url === '/hang') hanging.push(() => response.end(name));
      else response.end(name);
    }),
  ),
);
const hole = await startBlackHole(t);
const [a, b, c] = upstreams.map(({ port }) => port) as [number, number, number];

setClusters([eds('service')]);
setEndpoints({ service: [a] });
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      httpListener('service', 0, { route_config: routes({ cluster: 'service' }) }),
      httpListener('any', 0, { route_config: routes({ cluster_header: 'cluster' }) }),
      tcpListener('tcp', 0, { cluster: 'other', max_connect_attempts: 10_000 }),
    ],
    clusters: [staticCluster('fixed', a)],
    extra: { dynamic_resources: { cds_config: cds.source } },
  }),
  args: ['--concurrency', '2'],
});
const port = await baton.listenerPort('service');
const anyPort = await baton.listenerPort('any');

t.test('the server waits for the first clusters and their endpoints', async (t) => {
  t.equal((await httpRequest(port)).body, 'a');
  t.match((await baton.admin('/clusters')).body, /^version_info::1\n[\s\S]*service::added_via_api::true\n/);
  t.equal(await baton.stat('cluster_manager.cds.update_success'), 1);
  t.equal(await baton.stat('cluster.service.update_success'), 1);
});

t.test('the version of the cluster set is that of the last update that changed a cluster', async (t) => {
  const version = async () => /^version_info::(.*)\n/.exec((await baton.admin('/clusters')).body)![1];
  let updates = (await baton.stat('cluster_manager.cds.update_success'))!;
  const after = async (clusters: readonly Config[]) => {
    setClusters(clusters);
    await baton.waitForStat('cluster_manager.cds.update_success', ++updates);
    return version();
  };
  t.equal(await after([eds('service')]), '1', 'no change');
  t.equal(await after([eds('service'), staticCluster('fixed', b)]), '1', 'an invalid cluster changes nothing');
  t.equal(await after([eds('service'), staticCluster('more', b)]), '4');
  t.equal(await after([eds('service')]), '5', 'one was removed');
  t.equal(await after([eds('service')]), '5');
  const { configs } = JSON.parse((await baton.admin('/config_dump?mask=version_info')).body);
  t.equal(configs.find((each: Config) => String(each['@type']).endsWith('.ClustersConfigDump')).version_info, '5');
});

t.test('endpoints and clusters change under traffic without a failed request', async (t) => {
  const clients = SteadyClient.start(t, port, 4);
  const all = (count: number) => Promise.all(clients.map((client) => client.answers(count)));
  await all(5);
  const sets = [[a, b], [b], [b, c], [c, a], [a]];
  for (let round = 0; round < 20; round++) {
    const ports = sets[round % sets.length]!;
    setEndpoints({ service: ports, other: [b] });
    await baton.waitForStat('cluster.service.membership_total', ports.length);
    await all(3);
    if (round % 4 === 0) {
      setClusters([eds('service', { connect_timeout: `${2 + round}s` }), eds('other')]);
      await baton.waitForStat('cluster_manager.cluster_modified', 1 + round / 4);
      await all(3);
    }
  }
  t.same(
    clients.flatMap(({ failures }) => failures),
    [],
  );
  t.same(
    clients.flatMap(({ closing }) => closing.filter(Boolean)),
    [],
    'no connection of a client was closed',
  );
  t.equal(await baton.stat('cluster.service.upstream_cx_destroy_with_active_rq'), 0);
  const answers = clients.flatMap(({ closing }) => closing).length;
  const total = await baton.stat('cluster.service.upstream_rq_total');
  t.ok(total! >= answers, 'the counters of the cluster continue');
});

t.test('a request in flight completes although its host and its cluster are removed', async (t) => {
  setEndpoints({ service: [b] });
  await baton.waitForStat('cluster.service.membership_total', 1);
  await waitFor(async () => (await httpRequest(port)).body === 'b');
  const ofHost = httpRequest(port, '/hang');
  const ofCluster = httpRequest(anyPort, '/hang', { headers: { cluster: 'other' } });
  await waitFor(() => hanging.length === 2);
  setEndpoints({ service: [c] });
  await waitFor(async () => (await httpRequest(port)).body === 'c');
  setClusters([eds('service')]);
  await waitFor(async () => (await httpRequest(anyPort, '/', { headers: { cluster: 'other' } })).status === 503);
  for (const release of hanging) release();
  t.same([(await ofHost).body, (await ofCluster).body], ['b', 'b']);
  // Stats of a removed cluster are removed with its last connection.
  await waitFor(async () => (await baton.stat('cluster.other.upstream_rq_total')) === undefined);
  t.equal(await baton.stat('cluster_manager.cluster_removed'), 2);
});

t.test('a retry uses the hosts that the cluster has by then, and none when it is removed', async (t) => {
  hanging.length = 0;
  setClusters([eds('service'), eds('other')]);
  setEndpoints({ service: [a], other: [a] });
  await waitFor(async () => (await httpRequest(anyPort, '/', { headers: { cluster: 'other' } })).body === 'a');
  await waitFor(async () => (await httpRequest(port)).body === 'a');
  const changed = httpRequest(port, '/fail');
  const gone = httpRequest(anyPort, '/fail', { headers: { cluster: 'other' } });
  await waitFor(() => hanging.length === 2);
  setClusters([eds('service', { connect_timeout: '77s' })]);
  await waitFor(async () => (await httpRequest(anyPort, '/', { headers: { cluster: 'other' } })).status === 503);
  setEndpoints({ service: [b] });
  await waitFor(async () => (await httpRequest(port)).body === 'b');
  failsAtOnce = true;
  for (const fail of hanging) fail();
  t.match(await changed, { status: 200, body: 'b' });
  t.match(await gone, { status: 503, body: 'no healthy upstream' });
});

t.test('a retry leaves nothing behind of a cluster whose stats name changed meanwhile', async (t) => {
  hanging.length = 0;
  failsAtOnce = false;
  const setStats = (name: string) => setClusters([{ ...staticCluster('renamed', a), alt_stat_name: name }]);
  setStats('former');
  const ask = async (path: string) => httpRequest(anyPort, path, { headers: { cluster: 'renamed' } });
  await waitFor(async () => (await ask('/')).body === 'a');
  const retried = ask('/fail');
  await waitFor(() => hanging.length === 1);
  setStats('latter');
  await waitFor(
    async () => (await ask('/')).body === 'a' && (await baton.stat('cluster.latter.upstream_rq_total'))! > 0,
  );
  hanging.pop()!();
  await waitFor(() => hanging.length === 1);
  failsAtOnce = true;
  hanging.pop()!();
  t.equal((await retried).status, 503);
  await waitFor(async () => (await baton.stat('cluster.former.upstream_rq_total')) === undefined);
  t.equal(await baton.stat('cluster.latter.circuit_breakers.default.rq_retry_open'), 0);
});

t.test('clusters that share a stats name have separate hosts, and are removed only with their own', async (t) => {
  const shared = (name: string, port: number) => ({ ...staticCluster(name, port), alt_stat_name: 'shared' });
  setClusters([shared('blue', a), shared('green', a)]);
  const ask = async (cluster: string) => (await httpRequest(anyPort, '/', { headers: { cluster } })).body;
  for (const cluster of ['blue', 'green']) await waitFor(async () => (await ask(cluster)) === 'a');
  const requests = async (cluster: string) => {
    const { body } = await baton.admin('/clusters');
    return Number(new RegExp(`^${cluster}::127.0.0.1:${a}::rq_total::(.*)$`, 'm').exec(body)?.[1]);
  };
  const before = await requests('blue');
  await ask('green');
  t.equal(await requests('blue'), before, 'requests of the other cluster are not counted');
  t.equal(await baton.stat('cluster.shared.membership_total'), 2);
  const { body } = await baton.admin('/stats/monitoring?hidden=include&filter=rq_total');
  const metric = 'envoy_cluster_endpoint_rq_total';
  t.match(body, `${metric}{envoy_cluster_name="shared",envoy_endpoint_address="127.0.0.1:${a}"} `, 'found by its tags');

  setClusters([shared('green', a)]);
  await waitFor(async () => !(await baton.admin('/clusters')).body.includes('blue::'));
  t.equal(await baton.stat('cluster.shared.membership_total'), 1);
  t.equal(await baton.stat('cluster.shared.membership_healthy'), 1);
  t.equal(await baton.stat('cluster.shared.max_host_weight'), 0, 'as in Envoy, of discovered and resolved hosts only');
});

t.test('a TCP client whose host does not answer reaches a new host of the cluster', async (t) => {
  setClusters([eds('service'), eds('other', { connect_timeout: '0.1s' })]);
  setEndpoints({ service: [c], other: [hole] });
  await waitFor(async () => (await baton.admin('/clusters')).body.includes(`other::127.0.0.1:${hole}::`));
  const client = await connectRaw(t, await baton.listenerPort('tcp'));
  await waitFor(async () => (await baton.stat('cluster.other.upstream_cx_connect_timeout'))! > 0);
  setClusters([eds('service'), eds('other', { connect_timeout: '0.2s' })]);
  setEndpoints({ service: [c], other: [b] });
  client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  t.match((await client.readToEnd()).text, /b$/);
});

t.test('with close_connections_on_host_set_change, connections close when hosts are added or removed', async (t) => {
  const closes = { common_lb_config: { close_connections_on_host_set_change: true } };
  setClusters([eds('service'), eds('closing', closes)]);
  setEndpoints({ service: [a], closing: [b] });
  const ask = async (cluster: string) => (await httpRequest(anyPort, '/', { headers: { cluster } })).body;
  await waitFor(async () => (await ask('closing')) === 'b');
  await waitFor(async () => (await ask('service')) === 'a');
  const destroyed = async () => (await baton.stat('cluster.closing.upstream_cx_destroy'))!;
  const before = await destroyed();
  const active = (await baton.stat('cluster.closing.upstream_cx_active'))!;
  t.ok(active > 0);
  setAssignments([
    { cluster_name: 'service', endpoints: [{ lb_endpoints: [endpoint(a), endpoint(c)] }] },
    { cluster_name: 'closing', endpoints: [{ lb_endpoints: [endpoint(b), endpoint(c)] }] },
  ]);
  await baton.waitForStat('cluster.closing.membership_total', 2);
  await baton.waitForStat('cluster.service.membership_total', 2);
  await waitFor(async () => (await destroyed()) === before + active, { what: 'the ends of connections' });
  t.ok((await baton.stat('cluster.service.upstream_cx_active'))! > 0, 'other clusters keep theirs');
});

t.test('health and priorities of endpoints are obeyed and shown', async (t) => {
  setAssignments([
    {
      cluster_name: 'service',
      endpoints: [
        { lb_endpoints: [endpoint(a, { health_status: 'UNHEALTHY' }), endpoint(b, { health_status: 'DRAINING' })] },
        { priority: 1, lb_endpoints: [endpoint(c)] },
      ],
    },
  ]);
  await baton.waitForStat('cluster.service.membership_total', 3);
  await baton.waitForStat('cluster.service.membership_healthy', 1);
  for (let i = 0; i < 10; i++) t.equal((await httpRequest(port)).body, 'c');
  const { body } = await baton.admin('/clusters');
  t.match(body, `127.0.0.1:${a}::health_flags::/failed_eds_health\n`);
  t.match(body, `127.0.0.1:${b}::health_flags::/eds_status_draining\n`);
  t.match(body, `127.0.0.1:${c}::priority::1\n`);
});

t.test('the dump of endpoints has the metadata of the last assignment', async (t) => {
  const dumped = async () => {
    const path = '/config_dump?resource=dynamic_endpoint_configs&include_eds&name_regex=service';
    const { configs } = JSON.parse((await baton.admin(path)).body);
    return configs[0].endpoint_config.endpoints[0].lb_endpoints.map(({ metadata }: Config) => metadata);
  };
  for (const stage of ['first', 'second']) {
    const metadata = { filter_metadata: { 'envoy.lb': { stage, weights: [1, 2] }, mine: { on: true } } };
    setAssignments([
      { cluster_name: 'service', endpoints: [{ lb_endpoints: [endpoint(a, { metadata }), endpoint(b)] }] },
    ]);
    await waitFor(async () => JSON.stringify(await dumped()).includes(stage), {
      what: `the metadata of the ${stage} assignment`,
    });
    t.strictSame(await dumped(), [metadata, undefined]);
  }
});

t.test('rejected endpoints leave the previous ones in use, and the dump shows the error', async (t) => {
  const dumped = async () => {
    const path = '/config_dump?resource=dynamic_endpoint_configs&include_eds&name_regex=service';
    return JSON.parse((await baton.admin(path)).body).configs[0];
  };
  setAssignments([{ cluster_name: 'service', endpoints: [{ lb_endpoints: [endpoint(a)] }] }]);
  await baton.waitForStat('cluster.service.membership_total', 1);
  t.match(await dumped(), { client_status: 'ACKED', error_state: undefined });
  const rejected = (await baton.stat('cluster.service.update_rejected'))!;
  const bad = endpoint(b, { load_balancing_weight: 0 });
  setAssignments([{ cluster_name: 'service', endpoints: [{ lb_endpoints: [bad] }] }]);
  await baton.waitForStat('cluster.service.update_rejected', rejected + 1);
  t.equal((await httpRequest(port)).body, 'a');
  t.match(await dumped(), { client_status: 'NACKED', error_state: { details: /load_balancing_weight/ } });
  setAssignments([{ cluster_name: 'service', endpoints: [{ lb_endpoints: [endpoint(b)] }] }]);
  await waitFor(async () => (await httpRequest(port)).body === 'b', { what: 'the assignment after it' });
  t.match(await dumped(), { client_status: 'ACKED', error_state: undefined });
});

t.test('draining endpoints get no new requests, however many there are', async (t) => {
  const draining = { health_status: 'DRAINING' };
  const lb_endpoints = [endpoint(a), endpoint(b, draining), endpoint(c, draining)];
  setAssignments([{ cluster_name: 'service', endpoints: [{ lb_endpoints }] }]);
  await baton.waitForStat('cluster.service.membership_excluded', 2);
  t.equal(await baton.stat('cluster.service.membership_healthy'), 1);
  // Changes of health alone are merged for a while.
  await waitFor(async () => (await httpRequest(port)).body === 'a', { what: 'the host that is healthy now' });
  for (let i = 0; i < 10; i++) t.equal((await httpRequest(port)).body, 'a');
  t.equal(await baton.stat('cluster.service.lb_healthy_panic'), 0);
});

t.test('an invalid cluster leaves its predecessor in use, beside valid ones, and shows in the dump', async (t) => {
  setClusters([eds('service')]);
  await waitFor(async () => (await baton.stat('cluster.closing.membership_total')) === undefined);
  const bad = { ...eds('service'), connect_timeout: '-1s' };
  setClusters([bad, staticCluster('good', b), staticCluster('fixed', c)]);
  await baton.waitForStat('cluster_manager.cds.update_rejected', 1);
  await waitFor(async () => (await httpRequest(anyPort, '/', { headers: { cluster: 'good' } })).body === 'b');
  t.equal((await httpRequest(port)).body, 'a');
  t.equal((await httpRequest(anyPort, '/', { headers: { cluster: 'fixed' } })).body, 'a', 'static ones stay');
  const { configs } = JSON.parse((await baton.admin('/config_dump?include_eds')).body);
  const { dynamic_active_clusters: active, static_clusters: fixed } = configs[1];
  t.match(active, [
    { cluster: { name: 'good' }, client_status: 'ACKED' },
    { cluster: { name: 'service' }, client_status: 'NACKED', error_state: { details: /connect_timeout/ } },
  ]);
  t.match(fixed, [{ cluster: { name: 'fixed' } }]);
  t.match(
    configs[2].dynamic_endpoint_configs.map(
      (each: { endpoint_config: Config }) => each.endpoint_config['cluster_name'],
    ),
    ['good', 'service'],
  );
});

function eds(name: string, more: Config = {}): Config {
  return { name, type: 'EDS', eds_cluster_config: { eds_config: assigned.source }, ...more };
}

/** Routes everything to the cluster; /fail may be retried. */
function routes(action: Config): Config {
  const retried = { ...action, retry_policy: { retry_on: '5xx', num_retries: 3 } };
  const all = [
    { match: { path: '/fail' }, route: retried },
    { match: { prefix: '/' }, route: action },
  ];
  return { name: 'all', virtual_hosts: [{ name: 'all', domains: ['*'], routes: all }], validate_clusters: false };
}

function endpoint(of: number, more: Config = {}): Config {
  return { endpoint: { address: loopback(of) }, ...more };
}

function setClusters(clusters: readonly Config[]): void {
  cds.write('envoy.config.cluster.v3.Cluster', ...clusters);
}

function setEndpoints(portsOf: Readonly<Record<string, readonly number[]>>): void {
  setAssignments(
    Object.entries(portsOf).map(([cluster_name, ports]) => ({
      cluster_name,
      endpoints: [{ lb_endpoints: ports.map((each) => endpoint(each)) }],
    })),
  );
}

function setAssignments(assignments: readonly Config[]): void {
  assigned.write('envoy.config.endpoint.v3.ClusterLoadAssignment', ...assignments);
}
