// Load reports (LRS): what hosts have counted since the previous report reaches the service. The expected results are those of
// Envoy 1.40.

import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  HTTP2_CLUSTER,
  httpListener,
  httpRequest,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { type ClusterLoad, type Load, type LoadService, startLoadService } from './load-service.js';
import { ResourceFile } from './resource-file.js';

const CLUSTER = 'envoy.config.cluster.v3.Cluster';

const INTERVAL = { nanos: 200_000_000 };
const FULL = { circuit_breakers: { thresholds: [{ max_pending_requests: 0 }] } };

interface Rig {
  readonly baton: BatonProcess;
  readonly service: LoadService;
  readonly get: (path: string) => Promise<number>;
}

async function start(t: Teardown, program: ProxyProgram, more: Config = {}): Promise<Rig> {
  const service = await startLoadService(t);
  const upstream = await startUpstream(t, (request, response) => {
    response.statusCode = request.url === '/500' ? 500 : 200;
    response.end();
  });
  const a = staticCluster('a', upstream.port);
  const [endpoints] = (a['load_assignment'] as { endpoints: Config[] }).endpoints;
  endpoints!['locality'] = { region: 'r', zone: 'z', sub_zone: 's' };
  const routes = ['b', 'full', 'a'].map((cluster) => ({
    match: { prefix: cluster === 'a' ? '/' : `/${cluster}` },
    route: { cluster },
  }));
  const baton = await startBaton(t, {
    ...program,
    args: ['--concurrency', '2'],
    config: bootstrap({
      listeners: [
        httpListener('main', 0, { route_config: { virtual_hosts: [{ name: 'v', domains: ['*'], routes }] } }),
      ],
      clusters: [
        a,
        staticCluster('b', 1),
        staticCluster('full', 1, FULL),
        staticCluster('lrs', service.port, HTTP2_CLUSTER),
      ],
      extra: {
        ...more,
        node: { id: 'n', cluster: 'c' },
        cluster_manager: {
          load_stats_config: {
            api_type: 'GRPC',
            transport_api_version: 'V3',
            grpc_services: [{ envoy_grpc: { cluster_name: 'lrs' } }],
          },
        },
      },
    }),
  });
  const port = await baton.listenerPort('main');
  await waitFor(() => service.reports.length > 0);
  return { baton, service, get: async (path) => (await httpRequest(port, path)).status };
}

/** Returns the sums of all reports about a cluster, and its last totals in progress. */
function sums({ reports }: LoadService, name: string): Required<Load> {
  const total = { success: 0, error: 0, issued: 0, progress: 0 };
  for (const { upstream_locality_stats: stats = [] } of ofCluster(reports, name)) {
    for (const load of stats) {
      total.success += load.total_successful_requests ?? 0;
      total.error += load.total_error_requests ?? 0;
      total.issued += load.total_issued_requests ?? 0;
      total.progress = load.total_requests_in_progress ?? 0;
    }
  }
  return {
    total_successful_requests: total.success,
    total_error_requests: total.error,
    total_issued_requests: total.issued,
    total_requests_in_progress: total.progress,
  };
}

function ofCluster(reports: LoadService['reports'], name: string): ClusterLoad[] {
  return reports.flatMap(({ cluster_stats: all = [] }) => all.filter(({ cluster_name }) => cluster_name === name));
}

besideEnvoy('the service chooses clusters, and gets what their hosts count', async (t, program) => {
  const { baton, get, service } = await start(t, program);
  t.match(service.heads[0], {
    ':path': '/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats',
    ':authority': 'lrs',
    'content-type': 'application/grpc',
  });
  t.match(service.reports[0], { node: { id: 'n', cluster: 'c' } });
  t.ok((service.reports[0]!.node['client_features'] as string[]).includes('envoy.lrs.supports_send_all_clusters'));
  t.strictSame(service.reports[0]!.cluster_stats ?? [], []);
  t.equal(await get('/earlier'), 200);
  service.request({ clusters: ['a', 'b', 'nobody'], load_reporting_interval: INTERVAL });
  await waitFor(() => ofCluster(service.reports, 'a').length > 1);
  t.match(
    sums(service, 'a'),
    { total_successful_requests: 0, total_issued_requests: 0 },
    'earlier requests do not count',
  );
  t.strictSame([await get('/1'), await get('/2'), await get('/500'), await get('/b')], [200, 200, 500, 503]);
  await waitFor(() => sums(service, 'a').total_issued_requests === 3 && sums(service, 'b').total_error_requests === 1);
  t.match(sums(service, 'a'), { total_successful_requests: 2, total_error_requests: 1 });
  t.match(sums(service, 'b'), { total_issued_requests: 0, total_successful_requests: 0 });
  const [stats] = ofCluster(service.reports, 'a').flatMap(({ upstream_locality_stats: some = [] }) => some);
  t.strictSame(stats!.locality, { region: 'r', zone: 'z', sub_zone: 's' });
  t.strictSame(stats!.upstream_endpoint_stats ?? [], []);
  t.strictSame(ofCluster(service.reports, 'nobody'), []);
  t.strictSame(ofCluster(service.reports, 'lrs'), []);
  await baton.waitForStats({ 'load_reporter.requests': 1, 'load_reporter.errors': 0 });
});

besideEnvoy('requests that a circuit breaker refuses are reported as dropped', async (t, program) => {
  const { get, service } = await start(t, program);
  t.equal(await get('/full'), 503);
  service.request({ clusters: ['full'], load_reporting_interval: INTERVAL });
  await waitFor(() => ofCluster(service.reports, 'full').length > 0);
  t.strictSame([await get('/full'), await get('/full')], [503, 503]);
  const dropped = () =>
    ofCluster(service.reports, 'full').reduce((sum, { total_dropped_requests: count = 0 }) => sum + count, 0);
  await waitFor(() => dropped() >= 2, { what: 'the dropped requests' });
  t.equal(dropped(), 2, 'each once, and none of before');
});

besideEnvoy('all clusters, with their endpoints', async (t, program) => {
  const { get, service } = await start(t, program);
  service.request({ send_all_clusters: true, report_endpoint_granularity: true, load_reporting_interval: INTERVAL });
  await waitFor(() => ofCluster(service.reports, 'a').length > 0);
  t.equal(await get('/'), 200);
  await waitFor(() => sums(service, 'a').total_successful_requests === 1);
  for (const name of ['b', 'lrs']) t.ok(ofCluster(service.reports, name).length > 0);
  t.equal(sums(service, 'lrs').total_requests_in_progress, 1, 'the stream itself');
  const endpoints = ofCluster(service.reports, 'a').flatMap(({ upstream_locality_stats: some = [] }) =>
    some.flatMap(({ upstream_endpoint_stats: each = [] }) => each),
  );
  t.match(endpoints[0], { address: { socket_address: { address: '127.0.0.1' } }, total_issued_requests: 1 });
});

besideEnvoy('an ended stream is opened again, and loses no count', async (t, program) => {
  const { baton, get, service } = await start(t, program);
  service.request({ clusters: ['a'], load_reporting_interval: INTERVAL });
  await waitFor(() => ofCluster(service.reports, 'a').length > 0);
  service.endStream();
  await baton.waitForStat('load_reporter.retries', 1);
  t.equal(await get('/'), 200);
  await waitFor(() => service.heads.length === 2);
  await waitFor(() => sums(service, 'a').total_successful_requests === 1);
});

for (const request of [{ clusters: ['late'] }, { send_all_clusters: true }]) {
  besideEnvoy(`a cluster that is added later is reported: ${Object.keys(request)}`, async (t, program) => {
    const file = new ResourceFile(tempDir(t), 'clusters');
    file.write(CLUSTER);
    const { service } = await start(t, program, { dynamic_resources: { cds_config: file.source } });
    service.request({ ...request, load_reporting_interval: INTERVAL });
    await waitFor(() => service.reports.length > 2);
    t.strictSame(ofCluster(service.reports, 'late'), []);
    file.write(CLUSTER, staticCluster('late', 1));
    await waitFor(() => ofCluster(service.reports, 'late').length > 1);
    file.write(CLUSTER);
    await waitFor(() => (service.reports.at(-1)!.cluster_stats ?? []).every((stats) => stats.cluster_name !== 'late'));
  });
}

t.test('an unreadable response, and an interval of nothing', async (t) => {
  const { baton, service } = await start(t, { command: undefined });
  service.sendBytes(Buffer.from('ff', 'hex'));
  await baton.waitForStat('load_reporter.errors', 1);
  await waitFor(() => service.heads.length === 2);
  service.request({ send_all_clusters: true });
  await waitFor(() => service.reports.length > 3);
  t.match(await baton.admin('/ready'), { status: 200 });
  t.match(baton.stderr, /load reports to lrs closed: an unreadable response/);
});
