// Small clusters reach workers packed, and are built when they are first used.

import t from 'tap';
import { Random } from '../../src/common/random.js';
import type { Cluster as ClusterConfig } from '../../src/config/generated/api.js';
import { EXTENSIONS } from '../../src/extensions/index.js';
import { ExtensionRegistry } from '../../src/extensions/registry.js';
import { Runtime } from '../../src/runtime/runtime.js';
import { ClusterManager } from '../../src/upstream/cluster-manager.js';
import { packCluster, unpackCluster } from '../../src/upstream/packed-cluster.js';
import { SharedWords } from '../../src/upstream/shared-words.js';
import type { UpstreamThread } from '../../src/upstream/upstream-thread.js';
import { Clusters, staticCluster } from '../server/clusters/clusters.js';

const IPS = ['10.0.0.1', '2001:db8::1', '10.0.0.3'];
const BOUND: Partial<ClusterConfig> = {
  upstream_bind_config: { source_address: { address: '127.0.0.2', port_value: 0 } },
  circuit_breakers: { thresholds: [{ retry_budget: {} }] },
  outlier_detection: {},
};

t.test('unpacking restores the packed snapshot', (t) => {
  for (const more of [{}, BOUND]) {
    const { snapshot } = setUp(more);
    const packed = packCluster(snapshot())!;
    t.equal(packed.name, 'a');
    t.strictSame(unpackCluster(packed), withoutUndefined(snapshot()));
  }
  t.end();
});

t.test('clusters with many hosts or a hashing policy are not packed', (t) => {
  const many = Array.from({ length: 100 }, (_, index) => `10.0.0.${index}`);
  t.equal(packCluster(setUp({}, many).snapshot()), undefined);
  t.equal(packCluster(setUp({ lb_policy: 'RING_HASH' }).snapshot()), undefined);
  t.end();
});

t.test('a packed cluster is built once, on first use; it gets new hosts, and another version replaces it', (t) => {
  const { manager, snapshot, thread } = setUp({});
  const reference = manager.reference('a');
  t.equal(reference.current, undefined);
  take(manager, snapshot());
  t.equal(reference.built, undefined);
  t.equal(manager.size, 1);
  t.equal(manager.find('a'), reference);
  const cluster = reference.current!;
  t.equal(cluster.hostCount, 3);
  t.ok(cluster.pickHost());
  t.equal(reference.current, cluster);

  take(manager, { ...snapshot(), membershipVersion: 7 });
  t.equal(reference.current, cluster, 'the same version of the cluster');
  t.equal(cluster.snapshot.membershipVersion, 7);
  take(manager, { ...snapshot(), specVersion: 99 });
  t.not(reference.current, cluster);
  t.equal(reference.current!.thread, thread);

  manager.remove('a');
  t.equal(reference.current, undefined);
  take(manager, snapshot());
  manager.remove('a');
  t.equal(reference.current, undefined, 'though it was never built');
  t.end();
});

function take(manager: ClusterManager, snapshot: Parameters<typeof packCluster>[0]): void {
  for (const _ of manager.applyPacked([packCluster(snapshot)!]));
}

function setUp(more: Partial<ClusterConfig>, ips = IPS) {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ips, more)]);
  const thread = {
    stats: clusters.store.own,
    words: new SharedWords(clusters.words.handle(1)),
    runtime: new Runtime(),
    random: new Random(1),
    policies: new ExtensionRegistry(EXTENSIONS),
  } as unknown as UpstreamThread;
  return { manager: new ClusterManager(thread), thread, snapshot: () => clusters.set.byName.get('a')!.snapshot() };
}

/** Removes undefined fields, which JSON omits. */
function withoutUndefined<T>(value: T): T {
  if (Array.isArray(value)) return value.map(withoutUndefined) as T;
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  const kept = Object.entries(value).filter(([, held]) => held !== undefined);
  return Object.fromEntries(kept.map(([name, held]) => [name, withoutUndefined(held)])) as T;
}
