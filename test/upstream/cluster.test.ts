// How a worker handles connections, and reports to the primary, as the health of hosts changes.

import t from 'tap';
import { Priority } from '../../src/common/priority.js';
import { Random } from '../../src/common/random.js';
import { EXTENSIONS } from '../../src/extensions/index.js';
import { ExtensionRegistry } from '../../src/extensions/registry.js';
import { Runtime } from '../../src/runtime/runtime.js';
import { Cluster } from '../../src/upstream/cluster.js';
import type { ClusterSnapshot } from '../../src/upstream/cluster-snapshot.js';
import type { FailedCheckReport } from '../../src/upstream/health-checks/failed-check-report.js';
import { HealthFlag } from '../../src/upstream/hosts/health-flags.js';
import { SharedWords } from '../../src/upstream/shared-words.js';
import type { UpstreamThread } from '../../src/upstream/upstream-thread.js';
import { responseHead } from '../http/routing/heads.js';
import { Clusters, staticCluster } from '../server/clusters/clusters.js';

const FAILED = HealthFlag.FailedActiveHealthCheck;
const EJECTED = HealthFlag.FailedOutlierCheck;

/** Returns a worker's cluster of one host. */
function workersCluster(flags: number) {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1'])]);
  const first = clusters.set.byName.get('a')!.snapshot();
  const reports: FailedCheckReport[] = [];
  const thread = {
    stats: clusters.store.own,
    words: new SharedWords(clusters.words.handle(1)),
    runtime: new Runtime(),
    random: new Random(1),
    policies: new ExtensionRegistry(EXTENSIONS),
    reportFailedCheck: (report: FailedCheckReport) => reports.push(report),
  } as unknown as UpstreamThread;
  const snapshot = (flags: number): ClusterSnapshot => ({
    ...first,
    hosts: { ...first.hosts, healthFlags: Int32Array.of(flags) },
  });
  const cluster = new Cluster(thread, snapshot(flags));
  const host = () => cluster.pickHost()!;
  return { cluster, host, reports, update: (flags: number) => cluster.updateHosts(snapshot(flags)) };
}

t.test('connections to a host are closed once when it begins to fail', async (t) => {
  const { cluster, host, update } = workersCluster(0);
  let ended = 0;
  host().sockets = new Set([{ hostFailed: () => ended++ }]);
  for (const [flags, isGivenUp] of [
    [HealthFlag.FailedEdsHealth, false],
    [FAILED, true],
    [FAILED | EJECTED, false],
    [EJECTED, false],
    [0, false],
    [EJECTED, true],
  ] as const) {
    const pool = cluster.pool(host(), Priority.Default);
    ended = 0;
    update(flags);
    t.same([pool!.isDraining, ended], [isGivenUp, isGivenUp ? 1 : 0], String(flags));
    t.equal(cluster.pool(host(), Priority.Default) === pool, !isGivenUp);
  }
});

t.test('connections to a host that was failing at its first use are kept', async (t) => {
  const { cluster, host, update } = workersCluster(FAILED);
  const pool = cluster.pool(host(), Priority.Default);
  update(FAILED | HealthFlag.ActiveHealthCheckTimeout);
  t.notOk(pool!.isDraining);
});

t.test('a failed check of a host is reported once per update of the hosts', async (t) => {
  const { cluster, host, reports, update } = workersCluster(0);
  const says = responseHead(200, 'x-envoy-immediate-health-check-fail: true');
  cluster.observeHealthHeader(host(), responseHead(200));
  t.same(reports, []);
  for (let response = 0; response < 3; response++) cluster.observeHealthHeader(host(), says);
  t.same(reports, [{ cluster: 'a', block: host().block }]);
  for (const flags of [FAILED, 0]) update(flags);
  for (let response = 0; response < 3; response++) cluster.observeHealthHeader(host(), says);
  t.equal(reports.length, 2, 'it has recovered meanwhile');
});
