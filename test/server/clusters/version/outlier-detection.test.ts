// Outlier detection on the primary, while its cluster and hosts are added and removed.

import t from 'tap';
import type { Cluster, OutlierDetection } from '../../../../src/config/generated/api.js';
import type { PrimaryCluster } from '../../../../src/server/clusters/version/primary-cluster.js';
import { HealthFlag } from '../../../../src/upstream/hosts/health-flags.js';
import { OutlierKind } from '../../../../src/upstream/outliers/outlier-kind.js';
import { HostWord, SharedWords } from '../../../../src/upstream/shared-words.js';
import { assignment, Clusters, edsCluster, resource, staticCluster } from '../clusters.js';

const ALL = { max_ejection_percent: 100 };

function watched(ips: readonly string[], detection: OutlierDetection = ALL, changes: Partial<Cluster> = {}): Cluster {
  return staticCluster('a', ips, { outlier_detection: detection, ...changes });
}

/** One worker that counts as the test demands. */
function worker(clusters: Clusters) {
  const words = new SharedWords(clusters.words.handle(1)).words;
  const cluster = () => clusters.set.byName.get('a')!;
  const blockOf = (ip: string, { hosts }: PrimaryCluster = cluster()) => {
    return [...hosts].find((host) => host.address === `${ip}:80`)!.block;
  };
  return {
    words,
    blockOf,
    /** Counts five failures in a row. */
    report(ip: string, kind = OutlierKind.Consecutive5xx, specVersion = cluster().snapshot().specVersion) {
      const block = blockOf(ip);
      words[block + HostWord.Consecutive5xx] = 5;
      clusters.set.reportOutlier({ cluster: 'a', specVersion, block, kind });
    },
  };
}

const ejectedOf = (clusters: Clusters) =>
  Array.from(clusters.set.byName.get('a')!.hosts, (host) => (host.healthFlags & HealthFlag.FailedOutlierCheck) !== 0);
const active = (clusters: Clusters) => clusters.value('cluster.a.outlier_detection.ejections_active');
const detected = (clusters: Clusters) =>
  clusters.value('cluster.a.outlier_detection.ejections_detected_consecutive_5xx');

t.test('a reported host is ejected for its time, and starts again from zero', async (t) => {
  const clusters = new Clusters();
  clusters.start([watched(['10.0.0.1', '10.0.0.2'])]);
  const { report, words, blockOf } = worker(clusters);
  report('10.0.0.1');
  report('10.0.0.1');
  await clusters.turn();
  t.same([ejectedOf(clusters), active(clusters), detected(clusters)], [[true, false], 1, 1]);
  t.same([...clusters.published.at(-1)!.clusters[0]!.hosts.healthFlags], [HealthFlag.FailedOutlierCheck, 0]);
  words[blockOf('10.0.0.1') + HostWord.Consecutive5xx] = 4;
  clusters.advance(29_999);
  await clusters.turn();
  t.same(ejectedOf(clusters), [true, false]);
  clusters.advance(10_000);
  await clusters.turn();
  t.same([ejectedOf(clusters), active(clusters)], [[false, false], 0]);
  t.match(clusters.outlierEvents, [
    { cluster_name: 'a', upstream_url: '10.0.0.1:80', action: 'EJECT', enforced: true, num_ejections: 1 },
    { cluster_name: 'a', upstream_url: '10.0.0.1:80', action: 'UNEJECT', secs_since_last_action: '39' },
  ]);
  t.notOk('secs_since_last_action' in clusters.outlierEvents[0]!);
  clusters.advance(5000);
  t.equal(
    words[blockOf('10.0.0.1') + HostWord.Consecutive5xx],
    0,
    'the counts of requests in flight meanwhile do not remain',
  );
  report('10.0.0.1');
  t.match(clusters.outlierEvents[2], { action: 'EJECT', num_ejections: 2, secs_since_last_action: '5' });
});

t.test('pending notifications of a removed cluster are dropped', async (t) => {
  const clusters = new Clusters();
  clusters.start([watched(['10.0.0.1', '10.0.0.2'])]);
  const { report } = worker(clusters);
  for (const ip of ['10.0.0.1', '10.0.0.2']) {
    report(ip);
    await clusters.turn();
  }
  t.ok(clusters.hasTimers, 'the second one waits for the end of the window');
  report('10.0.0.1');
  clusters.set.removeStatic(['a']);
  t.notOk(clusters.hasTimers);
  const { length } = clusters.changed;
  await clusters.turn();
  t.equal(clusters.changed.length, length);
});

t.test('events name a moved host by its present address', async (t) => {
  const clusters = new Clusters();
  clusters.start([watched(['10.0.0.1'])]);
  const { hosts, membership } = clusters.set.byName.get('a')!;
  membership.outliers!.setHosts(Array.from(hosts, (host) => ({ ...host, address: '10.0.0.9:80' })));
  worker(clusters).report('10.0.0.1');
  t.match(clusters.outlierEvents, [{ upstream_url: '10.0.0.9:80' }]);
});

t.test('a host that passes an active health check returns at once, unless configured otherwise', async (t) => {
  for (const returns of [undefined, false]) {
    const clusters = new Clusters();
    const detection = { ...ALL, successful_active_health_check_uneject_host: returns };
    clusters.start([watched(['10.0.0.1', '10.0.0.2'], detection)]);
    const { report } = worker(clusters);
    report('10.0.0.1');
    const outliers = clusters.set.byName.get('a')!.membership.outliers!;
    outliers.passedHealthCheck('10.0.0.2:80');
    await clusters.turn();
    t.same([ejectedOf(clusters), active(clusters)], [[true, false], 1]);
    outliers.passedHealthCheck('10.0.0.1:80');
    await clusters.turn();
    t.same(ejectedOf(clusters), [returns === false, false], String(returns));
  }
});

t.test('a host that is removed and added again is a new one', async (t) => {
  const clusters = new Clusters();
  clusters.start([edsCluster('a', { outlier_detection: ALL })]);
  const eds = clusters.sources.to('a');
  const have = (...ips: string[]) => eds.deliver({ resources: [resource(assignment('a', ips))] });
  have('10.0.0.1', '10.0.0.2');
  const { report, words, blockOf } = worker(clusters);
  report('10.0.0.1');
  await clusters.turn();
  t.same([ejectedOf(clusters), active(clusters)], [[true, false], 1]);
  const gone = blockOf('10.0.0.1');
  words[gone + HostWord.Consecutive5xx] = 4;
  have('10.0.0.2');
  t.equal(active(clusters), 0);
  clusters.set.reportOutlier({
    cluster: 'a',
    specVersion: clusters.set.byName.get('a')!.snapshot().specVersion,
    block: gone,
    kind: OutlierKind.Consecutive5xx,
  });
  t.equal(detected(clusters), 1, 'a report about a removed host does not count');
  have('10.0.0.1', '10.0.0.2');
  await clusters.turn();
  t.equal(blockOf('10.0.0.1'), gone, 'its last requests may still be in flight');
  t.same([ejectedOf(clusters), words[gone + HostWord.Consecutive5xx]], [[false, false], 0]);
});

t.test(
  'a new version of the cluster starts without history, and takes only reports that were counted for it',
  async (t) => {
    const clusters = new Clusters();
    clusters.start([watched(['10.0.0.1', '10.0.0.2'])]);
    const { report } = worker(clusters);
    const former = clusters.set.byName.get('a')!.snapshot().specVersion;
    report('10.0.0.1');
    await clusters.turn();
    clusters.set.setStatic([watched(['10.0.0.1', '10.0.0.2'], { ...ALL, consecutive_5xx: 50 })]);
    await clusters.turn();
    t.same([ejectedOf(clusters), active(clusters), detected(clusters)], [[false, false], 0, 1]);
    report('10.0.0.1', OutlierKind.Consecutive5xx, former);
    t.equal(detected(clusters), 1);
    report('10.0.0.1');
    await clusters.turn();
    t.same([ejectedOf(clusters), active(clusters), detected(clusters)], [[true, false], 1, 2]);

    clusters.set.setStatic([staticCluster('a', ['10.0.0.1', '10.0.0.2'])]);
    await clusters.turn();
    t.same(ejectedOf(clusters), [false, false], 'without outlier detection none is ejected');
    report('10.0.0.1');
    t.equal(active(clusters), undefined, 'and has no stats of it');
    t.notOk(clusters.hasTimers, 'and no intervals');
    clusters.set.removeStatic(['a']);
  },
);

t.test('an outlier that is not ejected is reported again only after as many more failures', async (t) => {
  const clusters = new Clusters();
  clusters.start([watched(['10.0.0.1'], { max_ejection_percent: 0 })]);
  const { report, words, blockOf } = worker(clusters);
  report('10.0.0.1');
  t.same([detected(clusters), clusters.value('cluster.a.outlier_detection.ejections_overflow')], [1, 1]);
  t.equal(words[blockOf('10.0.0.1') + HostWord.Consecutive5xx], 0);
});

t.test('the primary detects failures that a dying worker could not report', async (t) => {
  const clusters = new Clusters();
  clusters.start([watched(['10.0.0.1', '10.0.0.2', '10.0.0.3'], { ...ALL, consecutive_gateway_failure: 0 })]);
  const { words, blockOf } = worker(clusters);
  words[blockOf('10.0.0.2') + HostWord.Consecutive5xx] = 6;
  words[blockOf('10.0.0.3') + HostWord.Consecutive5xx] = 4;
  clusters.set.recheckOutliers();
  await clusters.turn();
  t.same(ejectedOf(clusters), [false, true, false]);
  t.equal(
    clusters.value('cluster.a.outlier_detection.ejections_detected_consecutive_gateway_failure'),
    0,
    '0 is no limit',
  );
  clusters.set.recheckOutliers();
  t.equal(detected(clusters), 1);
});

t.test('success rates cover one interval, even when the sums overflow', async (t) => {
  const clusters = new Clusters();
  clusters.start([watched(['10.0.0.1', '10.0.0.2'])]);
  const { words, blockOf } = worker(clusters);
  const outliers = () => clusters.set.byName.get('a')!.membership.outliers!;
  const first = blockOf('10.0.0.1');
  const second = blockOf('10.0.0.2');
  const interval = (successes: readonly [number, number]) => {
    for (const [index, block] of [first, second].entries()) {
      words[block + HostWord.Requests]! += 100;
      words[block + HostWord.Successes]! += successes[index]!;
    }
    clusters.advance(10_001);
    return [outliers().successRate(first, 0), outliers().successRate(second, 0), outliers().rates(0).average];
  };
  words[first + HostWord.Requests] = 1000;
  clusters.set.setStatic([
    watched(['10.0.0.1', '10.0.0.2'], { ...ALL, success_rate_minimum_hosts: 2, enforcing_success_rate: 0 }),
  ]);
  t.same(interval([100, 50]), [100, 50, 75], 'what was counted for another version is not counted again');
  words[first + HostWord.Requests] = 2 ** 31 - 50;
  words[first + HostWord.Successes] = 2 ** 31 - 50;
  interval([0, 0]);
  t.same(interval([80, 90]), [80, 90, 85]);
  clusters.advance(10_001);
  t.same([outliers().successRate(first, 0), outliers().rates(0)], [-1, { average: -1, threshold: -1 }]);
});

t.test('an interval has the length that runtime sets at its start', async (t) => {
  const clusters = new Clusters();
  clusters.start([watched(['10.0.0.1'], { ...ALL, base_ejection_time: '1s', interval: '3s' })]);
  worker(clusters).report('10.0.0.1');
  for (const [ms, expected] of [
    [2999, [true]],
    [2, [false]],
  ] as const) {
    clusters.advance(ms);
    await clusters.turn();
    t.same(ejectedOf(clusters), expected);
  }
});
