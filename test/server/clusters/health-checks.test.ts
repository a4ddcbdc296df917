import t from 'tap';
import type { Cluster } from '../../../src/config/generated/api.js';
import { valueOfText } from '../../../src/runtime/value.js';
import { ClusterStats } from '../../../src/stats/layouts/cluster.js';
import { scopePrefix } from '../../../src/stats/scope-prefix.js';
import { Outcome } from '../../../src/upstream/health-checks/host-health.js';
import { healthFlagsText } from '../../../src/upstream/hosts/health-flags.js';
import { OutlierKind } from '../../../src/upstream/outliers/outlier-kind.js';
import { assignment, Clusters, edsCluster, resource, staticCluster } from './clusters.js';

const CHECK = {
  timeout: '1s',
  interval: '5s',
  no_traffic_interval: '10s',
  unhealthy_threshold: 2,
  healthy_threshold: 2,
  tcp_health_check: {},
};
const CHECKED: Partial<Cluster> = { health_checks: [CHECK] };
const [A, B] = ['10.0.0.1:80', '10.0.0.2:80'] as const;

/** The hosts of the cluster in use, each with its flags. */
function health(clusters: Clusters, name = 'a'): Record<string, string> {
  const hosts = [...clusters.set.byName.get(name)!.hosts];
  return Object.fromEntries(hosts.map((host) => [host.address, healthFlagsText(host.healthFlags)]));
}

function counts(clusters: Clusters, ...names: string[]) {
  return names.map((name) => clusters.value(`cluster.a.health_check.${name}`));
}

function eds(clusters: Clusters, ips: readonly string[]): void {
  clusters.sources.to('a').deliver({ resources: [resource(assignment('a', ips))] });
}

t.test('a start waits until each host has been checked once, with any outcome', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1', '10.0.0.2'], CHECKED)]);
  t.same(health(clusters), { [A]: '/failed_active_hc', [B]: '/failed_active_hc' });
  clusters.checks.end(A, Outcome.Passed);
  t.notOk(clusters.set.byName.get('a')!.isInitialized);
  clusters.checks.end(B, Outcome.Timeout);
  t.ok(clusters.set.byName.get('a')!.isInitialized);
  t.same(health(clusters), { [A]: 'healthy', [B]: '/failed_active_hc/active_hc_timeout' });
  t.same(counts(clusters, 'attempt', 'success', 'failure', 'network_failure'), [2, 1, 1, 1]);
  t.same(counts(clusters, 'healthy', 'degraded', 'passive_failure', 'verify_cluster'), [1, 0, 0, 0]);
  t.equal(clusters.value('cluster.a.membership_healthy'), 1);
});

t.test('a cluster without health checks has no stats of them', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1'])]);
  t.same(counts(clusters, 'attempt', 'healthy'), [undefined, undefined]);
});

t.test('a new version is used when its hosts have been checked', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1'], CHECKED)]);
  clusters.checks.end(A, Outcome.Passed);
  clusters.set.setStatic([staticCluster('a', ['10.0.0.2'], CHECKED)]);
  t.same(health(clusters), { [A]: 'healthy' });
  t.same(counts(clusters, 'healthy'), [1]);
  clusters.checks.end(B, Outcome.Degraded);
  t.same(health(clusters), { [B]: '/degraded_active_hc' });
  t.equal(clusters.value('cluster.a.membership_degraded'), 1);
  t.same(counts(clusters, 'healthy', 'degraded'), [1, 1]);
  clusters.advance(60_000);
  t.same(clusters.checks.pending, [B], 'hosts of the previous version are no longer checked');
});

t.test('hosts are checked repeatedly, and workers are notified of changes', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1', '10.0.0.2'], CHECKED)]);
  for (const host of [A, B]) clusters.checks.end(host, Outcome.Passed);
  await clusters.turn();
  clusters.advance(10_000);
  t.same(clusters.checks.pending.sort(), [A, B]);
  const before = clusters.published.length;
  clusters.checks.end(A, Outcome.Failed);
  clusters.checks.end(B, Outcome.NetworkFailure);
  await clusters.turn();
  await clusters.turn();
  t.same(health(clusters), { [A]: '/failed_active_hc', [B]: 'healthy' });
  t.equal(clusters.published.length, before + 1);
  t.same([...clusters.published.at(-1)!.clusters[0]!.hosts.healthFlags], [1, 0]);
  t.same(counts(clusters, 'healthy'), [1]);
});

t.test('the gauges follow the outcomes of checks', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1'], CHECKED)]);
  for (const [outcome, healthy, degraded] of [
    [Outcome.Degraded, 1, 1],
    [Outcome.Passed, 1, 0],
    [Outcome.Degraded, 1, 1],
    [Outcome.Failed, 0, 1],
    [Outcome.Degraded, 0, 1],
    [Outcome.Degraded, 1, 1],
  ] as const) {
    clusters.checks.end(A, outcome);
    t.same(counts(clusters, 'healthy', 'degraded'), [healthy, degraded]);
    clusters.advance(10_000);
  }
  clusters.set.setStatic([staticCluster('a', ['10.0.0.1'])]);
  t.same(counts(clusters, 'healthy', 'degraded'), [undefined, undefined], 'a version without checks has no such stats');
});

t.test('hosts of a cluster that has had no connection are checked at a separate interval', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1'], CHECKED)]);
  const stats = clusters.store.scope(clusters.set.byName.get('a')!.snapshot().scope);
  /** How many seconds after a check the next one starts. */
  const seconds = () => {
    clusters.checks.end(A, Outcome.Passed);
    for (let waited = 0; ; waited++) {
      if (clusters.checks.pending.length > 0) return waited;
      clusters.advance(1000);
    }
  };
  t.equal(seconds(), 10);
  stats.increment(ClusterStats.at.upstream_cx_total);
  clusters.store.resetCounters();
  t.equal(seconds(), 5, 'it has had one, regardless of its counters');
});

t.test('a host that discovery removes stays while it passes its checks', async (t) => {
  const clusters = new Clusters();
  clusters.start([edsCluster('a', CHECKED)]);
  eds(clusters, ['10.0.0.1', '10.0.0.2']);
  for (const host of [A, B]) clusters.checks.end(host, Outcome.Passed);
  eds(clusters, ['10.0.0.1']);
  t.same(health(clusters), { [A]: 'healthy', [B]: '/pending_dynamic_removal' });
  eds(clusters, ['10.0.0.1', '10.0.0.2']);
  t.same(health(clusters), { [A]: 'healthy', [B]: 'healthy' }, 'it returns');
  eds(clusters, ['10.0.0.1']);
  clusters.advance(10_000);
  clusters.checks.end(B, Outcome.Failed);
  t.same(health(clusters), { [A]: 'healthy' });
  clusters.advance(60_000);
  t.same(clusters.checks.pending, [A], 'it is no longer checked');
  eds(clusters, ['10.0.0.1', '10.0.0.2']);
  t.same(health(clusters), { [A]: 'healthy', [B]: '/failed_active_hc' }, 'it starts again as a new host');
  eds(clusters, ['10.0.0.1']);
  t.same(health(clusters), { [A]: 'healthy' }, 'a failing host is removed at once');
  t.same(counts(clusters, 'healthy'), [1]);
});

t.test('a prepared long assignment stays, whatever the checks find meanwhile', async (t) => {
  const clusters = new Clusters();
  clusters.start([edsCluster('a', CHECKED)]);
  eds(clusters, ['10.0.0.1', '10.0.0.2']);
  for (const host of [A, B]) clusters.checks.end(host, Outcome.Passed);
  eds(clusters, ['10.0.0.1']);
  clusters.advance(10_000);
  const long = Array.from({ length: 5000 }, (_, i) => `10.1.${i >> 8}.${i & 255}`);
  eds(clusters, ['10.0.0.1', ...long]);
  await clusters.turn();
  clusters.checks.end(B, Outcome.Failed);
  await clusters.turn();
  clusters.settle();
  t.same(clusters.hosts('a'), [A], 'it is not in use yet');
  t.equal(clusters.store.scopesUnder(scopePrefix('cluster.a.endpoint.10.1.0.0:80.')).length, 1);
});

t.test('a host that discovery reports as unhealthy, or whose health is ignored, is removed at once', async (t) => {
  const clusters = new Clusters();
  clusters.start([edsCluster('a', CHECKED), edsCluster('b', { ...CHECKED, ignore_health_on_host_removal: true })]);
  const call = (health: 'UNHEALTHY' | 'DRAINING') =>
    clusters.sources.to('a').deliver({ resources: [resource(assignment('a', ['10.0.0.1'], { health }))] });
  call('DRAINING');
  clusters.checks.end(A, Outcome.Passed);
  t.same(health(clusters), { [A]: '/eds_status_draining' });
  eds(clusters, []);
  t.same(health(clusters), {});
  call('UNHEALTHY');
  clusters.checks.end(A, Outcome.Passed);
  await clusters.turn();
  clusters.sources.to('b').deliver({ resources: [resource(assignment('b', ['10.0.0.2']))] });
  clusters.checks.end(B, Outcome.Passed);
  t.same([health(clusters), health(clusters, 'b')], [{ [A]: '/failed_eds_health' }, { [B]: 'healthy' }]);
  eds(clusters, []);
  clusters.sources.to('b').deliver({ resources: [resource(assignment('b', []))] });
  t.same([health(clusters), health(clusters, 'b')], [{}, {}]);
});

t.test('new hosts do not count before their first check if so configured', async (t) => {
  const clusters = new Clusters();
  clusters.start([edsCluster('a', { ...CHECKED, common_lb_config: { ignore_new_hosts_until_first_hc: true } })]);
  eds(clusters, ['10.0.0.1']);
  clusters.checks.end(A, Outcome.Passed);
  eds(clusters, ['10.0.0.1', '10.0.0.2']);
  t.same(health(clusters), { [A]: 'healthy', [B]: '/failed_active_hc/pending_active_hc' });
  t.equal(clusters.value('cluster.a.membership_excluded'), 1);
  clusters.checks.end(B, Outcome.NetworkFailure);
  await clusters.turn();
  t.same(health(clusters), { [A]: 'healthy', [B]: '/failed_active_hc' });
  t.equal(clusters.value('cluster.a.membership_excluded'), 0);
});

t.test('an endpoint may be checked at another address, or not at all', async (t) => {
  const clusters = new Clusters();
  const socket = (address: string) => ({ socket_address: { address, port_value: 80 } });
  const lb_endpoints = [
    { endpoint: { address: socket('10.0.0.1'), health_check_config: { port_value: 8080 } } },
    { endpoint: { address: socket('10.0.0.2'), health_check_config: { disable_active_health_check: true } } },
    { endpoint: { address: socket('10.0.0.3'), health_check_config: { address: socket('10.9.9.9') } } },
  ];
  clusters.start([staticCluster('a', [], { ...CHECKED, load_assignment: { endpoints: [{ lb_endpoints }] } })]);
  t.same(clusters.checks.pending, ['10.0.0.1:8080', '10.9.9.9:80']);
  for (const host of clusters.checks.pending) clusters.checks.end(host, Outcome.Passed);
  t.same(health(clusters), { [A]: 'healthy', [B]: 'healthy', '10.0.0.3:80': 'healthy' });
});

t.test('an endpoint whose checks are disabled is healthy, and may be checked again later', async (t) => {
  const clusters = new Clusters();
  clusters.start([edsCluster('a', CHECKED)]);
  const check = (disable_active_health_check: boolean) => {
    const address = { socket_address: { address: '10.0.0.1', port_value: 80 } };
    const endpoint = { address, health_check_config: { disable_active_health_check } };
    const message = { cluster_name: 'a', endpoints: [{ lb_endpoints: [{ endpoint }] }] };
    clusters.sources.to('a').deliver({ resources: [resource(message)] });
  };
  check(false);
  clusters.checks.end(A, Outcome.Passed);
  check(true);
  clusters.advance(60_000);
  t.same([health(clusters), clusters.checks.pending, counts(clusters, 'healthy')], [{ [A]: 'healthy' }, [], [0]]);
  check(false);
  t.same([health(clusters), clusters.checks.pending], [{ [A]: '/failed_active_hc' }, [A]]);
  check(true);
  t.same(health(clusters), { [A]: 'healthy' }, 'outcomes of earlier checks are dropped');
});

t.test('an endpoint with a new check address starts again; with a new check hostname it does not', async (t) => {
  const clusters = new Clusters();
  clusters.start([edsCluster('a', CHECKED)]);
  const check = (health_check_config: { port_value: number; hostname?: string }) => {
    const address = { socket_address: { address: '10.0.0.1', port_value: 80 } };
    const endpoints = [{ lb_endpoints: [{ endpoint: { address, health_check_config } }] }];
    clusters.sources.to('a').deliver({ resources: [resource({ cluster_name: 'a', endpoints })] });
  };
  check({ port_value: 81 });
  clusters.checks.end('10.0.0.1:81', Outcome.Passed);
  check({ port_value: 81, hostname: 'other' });
  t.same([health(clusters), clusters.checks.pending], [{ [A]: 'healthy' }, []]);
  clusters.advance(10_000);
  t.equal(clusters.checks.hostnameOf('10.0.0.1:81'), 'other', 'its next check uses that name');
  check({ port_value: 81, hostname: 'third' });
  t.equal(clusters.checks.hostnameOf('10.0.0.1:81'), 'third', 'and one in progress starts again');
  clusters.checks.end('10.0.0.1:81', Outcome.Passed);
  t.same(counts(clusters, 'attempt', 'success', 'failure'), [3, 2, 0]);
  check({ port_value: 82 });
  t.same([health(clusters), clusters.checks.pending], [{ [A]: '/failed_active_hc' }, ['10.0.0.1:82']]);
  check({ port_value: 83 });
  t.same(clusters.checks.pending, ['10.0.0.1:83'], 'the check in progress is abandoned');
  clusters.advance(60_000);
  t.same(counts(clusters, 'attempt', 'failure'), [5, 0], 'none starts beside it');
  t.same(counts(clusters, 'healthy'), [0]);
  clusters.checks.end('10.0.0.1:83', Outcome.Passed);
  await clusters.turn();
  t.same([health(clusters), counts(clusters, 'healthy')], [{ [A]: 'healthy' }, [1]]);
});

t.test('runtime bounds intervals, and a due check waits for its turn', async (t) => {
  const clusters = new Clusters();
  const values = new Map([['health_check.max_interval', valueOfText('50')]]);
  clusters.checks.runtime.apply({ version: 1, values });
  clusters.checks.isHeld = true;
  clusters.start([staticCluster('a', ['10.0.0.1'], CHECKED)]);
  t.same(clusters.checks.pending, []);
  clusters.checks.due.shift()!();
  clusters.checks.end(A, Outcome.Passed);
  clusters.advance(49);
  t.equal(clusters.checks.due.length, 0);
  clusters.advance(3);
  t.equal(clusters.checks.due.length, 1);
  values.set('health_check.min_interval', valueOfText('200'));
  clusters.checks.runtime.apply({ version: 2, values });
  clusters.checks.due.shift()!();
  clusters.checks.end(A, Outcome.Passed);
  clusters.advance(199);
  t.equal(clusters.checks.due.length, 0);
  clusters.advance(3);
  t.equal(clusters.checks.due.length, 1);
  clusters.set.removeStatic(['a']);
  clusters.checks.due.shift()!();
  t.same(clusters.checks.pending, [], 'its cluster has been removed meanwhile');
});

t.test('an endpoint that is listed twice is checked once', async (t) => {
  const clusters = new Clusters();
  clusters.start([edsCluster('a', CHECKED)]);
  eds(clusters, ['10.0.0.1', '10.0.0.1']);
  t.same(counts(clusters, 'attempt', 'failure'), [1, 0]);
  clusters.checks.end(A, Outcome.Passed);
  clusters.advance(10_000);
  eds(clusters, ['10.0.0.1', '10.0.0.1']);
  t.same([clusters.checks.pending, counts(clusters, 'attempt', 'healthy')], [[A], [2, 1]]);
});

t.test('first checks are delayed by their jitter', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1'], { health_checks: [{ ...CHECK, initial_jitter: '5s' }] })]);
  t.same(clusters.checks.pending, []);
  clusters.advance(5000);
  t.same(clusters.checks.pending, [A]);
});

t.test('a check that cannot start has failed, and another one follows', async (t) => {
  const clusters = new Clusters();
  clusters.checks.isBroken = true;
  clusters.start([staticCluster('a', ['10.0.0.1'], CHECKED)]);
  t.ok(clusters.set.byName.get('a')!.isInitialized);
  t.same(counts(clusters, 'attempt', 'failure', 'network_failure'), [1, 1, 1]);
  clusters.checks.isBroken = false;
  clusters.advance(10_000);
  t.same(clusters.checks.pending, [A]);
});

t.test('hosts that replace awaited ones are awaited as well', async (t) => {
  const clusters = new Clusters();
  clusters.start([edsCluster('a', CHECKED)]);
  eds(clusters, ['10.0.0.1']);
  eds(clusters, ['10.0.0.2']);
  t.notOk(clusters.set.byName.get('a')!.isInitialized);
  t.same(clusters.checks.pending, [B]);
  clusters.checks.end(B, Outcome.Passed);
  t.ok(clusters.set.byName.get('a')!.isInitialized);
});

t.test('checked hosts are not awaited again when others are added', async (t) => {
  const clusters = new Clusters();
  clusters.start([edsCluster('a', CHECKED)]);
  eds(clusters, ['10.0.0.1', '10.0.0.2']);
  clusters.checks.end(A, Outcome.Passed);
  eds(clusters, ['10.0.0.1', '10.0.0.2', '10.0.0.3']);
  clusters.checks.end(B, Outcome.Passed);
  t.notOk(clusters.set.byName.get('a')!.isInitialized);
  clusters.checks.end('10.0.0.3:80', Outcome.Passed);
  t.ok(clusters.set.byName.get('a')!.isInitialized);
});

t.test('an ejected host returns with the check that makes it healthy, and not before', async (t) => {
  const clusters = new Clusters();
  const outlier_detection = { max_ejection_percent: 100, base_ejection_time: '300s' };
  clusters.start([staticCluster('a', ['10.0.0.1'], { ...CHECKED, outlier_detection })]);
  clusters.checks.end(A, Outcome.Passed);
  const cluster = clusters.set.byName.get('a')!;
  const { block } = [...cluster.hosts][0]!;
  const { specVersion } = cluster.snapshot();
  clusters.set.reportOutlier({ cluster: 'a', specVersion, block, kind: OutlierKind.Consecutive5xx });
  for (const [outcome, expected] of [
    [Outcome.Failed, '/failed_active_hc/failed_outlier_check'],
    [Outcome.Passed, '/failed_active_hc/failed_outlier_check'],
    [Outcome.Passed, 'healthy'],
  ] as const) {
    clusters.advance(10_000);
    clusters.checks.end(A, outcome);
    await clusters.turn();
    t.same(health(clusters), { [A]: expected });
  }
});

t.test('hosts kept after their removal from discovery are counted when the wait ends', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.3'])]);
  clusters.set.setStatic([edsCluster('a', CHECKED)]);
  eds(clusters, ['10.0.0.1', '10.0.0.2']);
  clusters.checks.end(B, Outcome.Passed);
  eds(clusters, []);
  t.same(health(clusters), { [B]: '/pending_dynamic_removal' });
  t.same(counts(clusters, 'healthy'), [1]);
});

t.test('a response that reports a failed check fails its host', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1'], CHECKED)]);
  clusters.checks.end(A, Outcome.Passed);
  const cluster = clusters.set.byName.get('a')!;
  cluster.membership.failedInTraffic([...cluster.hosts][0]!.block);
  await clusters.turn();
  t.same(health(clusters), { [A]: '/failed_active_hc/excluded_via_immediate_hc_fail' });
  t.same(counts(clusters, 'passive_failure', 'failure', 'healthy'), [1, 1, 0]);
  t.equal(clusters.value('cluster.a.membership_excluded'), 1);
});

t.test('the checks of a removed cluster end, and their memory is freed', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1', '10.0.0.2'], CHECKED)]);
  clusters.checks.end(A, Outcome.Passed);
  clusters.set.removeStatic(['a']);
  t.same(clusters.checks.pending, []);
  await clusters.turn();
  clusters.settle();
  t.same(counts(clusters, 'attempt', 'healthy'), [undefined, undefined]);
  clusters.advance(100_000);
  t.same(clusters.checks.pending, []);
  t.notOk(clusters.hasTimers);
});
