// Requests are distributed over localities by their weights, or by zone.

import fc from 'fast-check';
import t from 'tap';
import { Random } from '../../../src/common/random.js';
import { runSync } from '../../../src/common/time/next-turn.js';
import { Word64 } from '../../../src/common/xxh64.js';
import { leastRequest } from '../../../src/extensions/load-balancing-policies/least-request/index.js';
import { localityBalancing } from '../../../src/extensions/load-balancing-policies/localities.js';
import { maglev } from '../../../src/extensions/load-balancing-policies/maglev/index.js';
import { random as randomPolicy } from '../../../src/extensions/load-balancing-policies/random/index.js';
import { ringHash } from '../../../src/extensions/load-balancing-policies/ring-hash/index.js';
import { roundRobin } from '../../../src/extensions/load-balancing-policies/round-robin/index.js';
import { ipAddress } from '../../../src/io/addresses/address.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import { ClusterStats } from '../../../src/stats/layouts/cluster.js';
import { HealthFlag } from '../../../src/upstream/hosts/health-flags.js';
import type { ResolvedEndpoint } from '../../../src/upstream/hosts/host.js';
import { HostDirectory } from '../../../src/upstream/hosts/host-directory.js';
import { ClusterLoadBalancer } from '../../../src/upstream/load-balancer/cluster-load-balancer.js';
import { DEFAULT_HEALTH_POLICY } from '../../../src/upstream/load-balancer/health-parts.js';
import { LocalCluster } from '../../../src/upstream/load-balancer/local-cluster.js';
import type { LoadBalancingPolicy } from '../../../src/upstream/load-balancer/policy.js';
import { SharedWords, SharedWordsOwner } from '../../../src/upstream/shared-words.js';
import { setValues } from '../../runtime/values.js';

/** Hosts of one locality, which is named by its zone. */
interface Zone {
  readonly zone: string;
  readonly hosts: number;
  readonly failed?: number;
  readonly degraded?: number;
  readonly weight?: number;
  readonly priority?: number;
  readonly hostWeight?: number;
  readonly more?: Partial<ResolvedEndpoint>;
}

const OWN = { region: '', zone: 'own', subZone: '' };
const WEIGHTED = { locality_lb_config: { locality_weighted_lb_config: {} } };

function hostsOf(zones: readonly Zone[], wordsBytes = 65_536) {
  const owner = new SharedWordsOwner(wordsBytes);
  const directory = new HostDirectory({
    allocate: () => ({ block: owner.allocateHost(), scope: { prefix: '', layout: 0, chunk: 0, base: 0 } }),
    retire: () => {},
  });
  const names: string[] = [];
  const endpoints = zones.flatMap(
    ({ zone, hosts, failed = 0, degraded = 0, weight, priority = 0, hostWeight = 1, more }) =>
      Array.from({ length: hosts }, (_, index): ResolvedEndpoint => {
        names.push(zone);
        return {
          address: ipAddress(`10.0.${names.length >> 8}.${names.length & 255}`, 80)!,
          hostname: '',
          weight: hostWeight,
          priority,
          locality: { region: '', zone, subZone: '' },
          ...(weight !== undefined && { localityWeight: weight }),
          healthFlags:
            index < failed ? HealthFlag.FailedEdsHealth : index < failed + degraded ? HealthFlag.DegradedEdsHealth : 0,
          isCanary: false,
          ...more,
        };
      }),
  );
  directory.update(endpoints);
  return { data: directory.data, names, words: new SharedWords(owner.handle(0)).words };
}

interface Choice {
  readonly policy?: LoadBalancingPolicy;
  readonly config?: object;
  readonly panicThreshold?: number;
  /** The localities of the local cluster. */
  readonly local?: readonly Zone[];
}

function balancerOf(zones: readonly Zone[], choice: Choice = {}) {
  const { config = WEIGHTED, local, panicThreshold = 50, policy = roundRobin as LoadBalancingPolicy } = choice;
  const { data, names, words } = hostsOf(zones);
  const random = new Random(3);
  const runtime = new Runtime();
  const counted: Record<string, number> = {};
  const statNames = Object.fromEntries(Object.entries(ClusterStats.at).map(([name, at]) => [at, name]));
  const stats = {
    increment(at: number): void {
      counted[statNames[at]!] = (counted[statNames[at]!] ?? 0) + 1;
    },
  };
  const localCluster = new LocalCluster('me', OWN);
  if (local !== undefined) localCluster.update(hostsOf(local).data);
  const localities = policy.localities?.(config);
  const health = {
    ...DEFAULT_HEALTH_POLICY,
    panicThreshold,
    failTrafficOnPanic: localities?.failTrafficOnPanic ?? false,
  };
  const balancer = new ClusterLoadBalancer(
    data,
    { policy, settings: policy.settings?.(config), localities, health },
    {
      words,
      random,
      clock: { monotonicMs: 0 },
      runtime,
      locality: OWN,
      zones: local === undefined ? undefined : { localCluster, stats },
    },
  );
  runSync(balancer.prepare());
  const hash = new Word64();
  const pick = () => {
    hash.set(random.nextInt32(), random.nextInt32());
    return balancer.pick(random, hash);
  };
  /** Counts the picks of each zone; '': no host. */
  const picks = (count = 1000) => {
    const counts: Record<string, number> = Object.fromEntries(zones.map(({ zone }) => [zone, 0]));
    for (let i = 0; i < count; i++) {
      const host = pick();
      const zone = host < 0 ? '' : names[host]!;
      counts[zone] = (counts[zone] ?? 0) + 1;
    }
    return counts;
  };
  return { balancer, counted, localCluster, picks, pick, runtime };
}

const near = (t: Tap, found: Record<string, number>, wanted: Record<string, number>, tolerance: number) => {
  for (const [zone, count] of Object.entries(wanted)) {
    t.ok(Math.abs((found[zone] ?? 0) - count) <= tolerance, `${zone}: ${found[zone]}, expected about ${count}`);
  }
};
type Tap = Pick<typeof t, 'ok'>;

t.test('localities get requests in proportion to their weights, whatever their size', async (t) => {
  const zones = [
    { zone: 'a', hosts: 1, weight: 1 },
    { zone: 'b', hosts: 5, weight: 3 },
    { zone: 'c', hosts: 2, weight: 0 },
    { zone: 'd', hosts: 2 },
  ];
  for (const policy of [roundRobin, leastRequest, randomPolicy] as LoadBalancingPolicy[]) {
    t.same(balancerOf(zones, { policy }).picks(400), { a: 100, b: 300, c: 0, d: 0 }, policy.name);
  }
});

t.test('hosts of a locality get its requests by their own weights', async (t) => {
  const { pick } = balancerOf([
    { zone: 'a', hosts: 1, weight: 1, hostWeight: 100 },
    { zone: 'b', hosts: 1, weight: 1, hostWeight: 1 },
    { zone: 'b', hosts: 1, weight: 1, hostWeight: 3 },
  ]);
  const counts = [0, 0, 0];
  for (let i = 0; i < 800; i++) counts[pick()]!++;
  t.same(counts, [400, 100, 300]);
});

t.test('a locality whose hosts fail gets fewer requests, beyond what overprovisioning covers', async (t) => {
  const zones = (failed: number) => [
    { zone: 'a', hosts: 10, failed, weight: 1 },
    { zone: 'b', hosts: 10, weight: 1 },
  ];
  t.same(balancerOf(zones(2)).picks(1000), { a: 500, b: 500 });
  // 1.4 × 5 of 10 hosts: 0.7 of its weight.
  near(t, balancerOf(zones(5)).picks(1700), { a: 700, b: 1000 }, 2);
  t.same(balancerOf(zones(10), { panicThreshold: 10 }).picks(100), { a: 0, b: 100 });
});

t.test('weights of localities do not matter in panic, and where no available locality has one', async (t) => {
  const failed = [
    { zone: 'a', hosts: 2, failed: 2, weight: 1 },
    { zone: 'b', hosts: 4, failed: 4, weight: 9 },
  ];
  t.same(balancerOf(failed).picks(600), { a: 200, b: 400 });
  t.same(
    balancerOf([
      { zone: 'a', hosts: 2 },
      { zone: 'b', hosts: 4, weight: 0 },
    ]).picks(600),
    { a: 200, b: 400 },
  );
});

t.test('weights apply within a priority, to healthy and to degraded hosts', async (t) => {
  const zones = [
    { zone: 'a', hosts: 2, failed: 2, weight: 1 },
    { zone: 'b', hosts: 2, weight: 1, priority: 1 },
    { zone: 'c', hosts: 2, weight: 4, priority: 1 },
  ];
  t.same(balancerOf(zones).picks(500), { a: 0, b: 100, c: 400 });
  const degraded = [
    { zone: 'a', hosts: 4, degraded: 4, weight: 1 },
    { zone: 'b', hosts: 4, degraded: 4, weight: 3 },
  ];
  t.same(balancerOf(degraded).picks(400), { a: 100, b: 300 });
});

t.test('a host that health checks keep after its removal does not change the weight of its locality', async (t) => {
  const { picks } = balancerOf([
    { zone: 'a', hosts: 1, weight: 1 },
    { zone: 'b', hosts: 1, weight: 1 },
    { zone: 'b', hosts: 1, weight: 7, more: { healthFlags: HealthFlag.PendingDynamicRemoval } },
    { zone: 'c', hosts: 1, weight: 7, more: { healthFlags: HealthFlag.PendingDynamicRemoval } },
  ]);
  t.same(picks(400), { a: 200, b: 200, c: 0 });
});

t.test('policies that pick by hash give each locality its share of all hashes', async (t) => {
  const zones = [
    { zone: 'a', hosts: 1, weight: 1 },
    { zone: 'own', hosts: 5, weight: 3 },
    { zone: 'c', hosts: 2 },
  ];
  const config = { locality_weighted_lb_config: {} };
  for (const policy of [ringHash, maglev] as LoadBalancingPolicy[]) {
    near(t, balancerOf(zones, { policy, config }).picks(4000), { a: 1000, own: 3000, c: 0 }, 300);
    const none = balancerOf(
      [
        { zone: 'a', hosts: 2 },
        { zone: 'b', hosts: 2 },
      ],
      { policy, config },
    );
    t.same(none.picks(3), { a: 0, b: 0, '': 3 }, 'without weights no host is used, as in Envoy');
    const failing = [{ zone: 'a', hosts: 4, failed: 3, weight: 1 }, zones[1]!];
    near(t, balancerOf(failing, { policy, config }).picks(4000), { a: 1000, own: 3000 }, 300);
  }
});

t.test('requests stay in the zone of the server if its hosts can bear them', async (t) => {
  const local = [
    { zone: 'own', hosts: 2 },
    { zone: 'b', hosts: 2 },
  ];
  const { counted, picks } = balancerOf(
    [
      { zone: 'own', hosts: 4 },
      { zone: 'b', hosts: 2 },
    ],
    { local, config: {} },
  );
  t.same(picks(100), { own: 100, b: 0 });
  t.same(counted, { lb_recalculate_zone_structures: 1, lb_zone_routing_all_directly: 100 });
});

t.test('what the hosts of the zone cannot bear goes to zones with capacity', async (t) => {
  // The local cluster sends 40, 40 and 20 % of the requests; the hosts of the zones can take 25, 50 and 25 %.
  const local = [
    { zone: 'own', hosts: 4 },
    { zone: 'b', hosts: 4 },
    { zone: 'c', hosts: 2 },
  ];
  const zones = [
    { zone: 'c', hosts: 5 },
    { zone: 'b', hosts: 10 },
    { zone: 'own', hosts: 5 },
  ];
  const { counted, picks } = balancerOf(zones, { local, config: {} });
  near(t, picks(16_000), { own: 10_000, b: 4000, c: 2000 }, 300);
  t.equal(counted['lb_zone_routing_sampled']! + counted['lb_zone_routing_cross_zone']!, 16_000);
});

t.test('with equal shares of hosts, every zone gets what its own servers send', async () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 5 }), (sizes) => {
      const zones = sizes.map((hosts, index) => ({ zone: index === 0 ? 'own' : `z${index}`, hosts }));
      const { picks } = balancerOf(zones, { local: zones, config: zoneConfig({ min_cluster_size: '1' }) });
      return picks(20)['own'] === 20;
    }),
  );
});

t.test('zones are ignored in small clusters and where the local cluster does not know the zone', async (t) => {
  const zones = [
    { zone: 'own', hosts: 2 },
    { zone: 'b', hosts: 2 },
  ];
  const small = balancerOf(zones, { local: zones, config: {} });
  t.same(small.picks(100), { own: 50, b: 50 });
  t.same(small.counted, { lb_recalculate_zone_structures: 1, lb_zone_cluster_too_small: 1 });
  setValues(small.runtime, { 'upstream.zone_routing.min_cluster_size': '4' });
  t.same(small.picks(100), { own: 100, b: 0 });
  setValues(small.runtime, { 'upstream.zone_routing.min_cluster_size': '4', 'upstream.zone_routing.enabled': '0' });
  t.same(small.picks(100), { own: 50, b: 50 });
  const elsewhere = balancerOf(zones, {
    local: [
      { zone: 'b', hosts: 2 },
      { zone: 'c', hosts: 2 },
    ],
    config: zoneConfig({ min_cluster_size: '1' }),
  });
  t.same(elsewhere.picks(100), { own: 50, b: 50 });
  t.same(elsewhere.counted, { lb_recalculate_zone_structures: 1, lb_local_cluster_not_ok: 1 });
});

t.test('routing by zone follows the hosts of the local cluster', async (t) => {
  const zones = [
    { zone: 'own', hosts: 3 },
    { zone: 'b', hosts: 3 },
  ];
  const { counted, localCluster, picks } = balancerOf(zones, { local: zones, config: {} });
  t.same(picks(60), { own: 60, b: 0 });
  localCluster.update(
    hostsOf([
      { zone: 'own', hosts: 3 },
      { zone: 'b', hosts: 1 },
    ]).data,
  );
  near(t, picks(6000), { own: 4000, b: 2000 }, 200);
  t.equal(counted['lb_recalculate_zone_structures'], 2);
});

t.test('when most hosts of the local cluster fail, zones are ignored or requests fail', async (t) => {
  const zones = [
    { zone: 'own', hosts: 3 },
    { zone: 'b', hosts: 3 },
  ];
  const local = [
    { zone: 'own', hosts: 3, failed: 2 },
    { zone: 'b', hosts: 3, failed: 2 },
  ];
  const { counted, picks } = balancerOf(zones, { local, config: {} });
  t.same(picks(60), { own: 30, b: 30 });
  t.equal(counted['lb_local_cluster_not_ok'], 60);
  const failing = balancerOf(zones, { local, config: zoneConfig({ fail_traffic_on_panic: true }) });
  t.same(failing.picks(60), { own: 0, b: 0, '': 60 });
});

t.test('requests can be forced to stay in the zone while enough hosts are healthy there', async (t) => {
  const zones = (failed: number) => [
    { zone: 'own', hosts: 3, failed },
    { zone: 'b', hosts: 30 },
  ];
  const local = [{ zone: 'own', hosts: 3 }];
  const forced = zoneConfig({ force_local_zone: { min_size: 2 } });
  t.same(balancerOf(zones(1), { local, config: forced }).picks(60), { own: 60, b: 0 });
  t.ok(balancerOf(zones(2), { local, config: forced }).picks(600)['b']! > 400);
  const older = zoneConfig({ force_locality_direct_routing: true });
  t.same(balancerOf(zones(2), { local, config: older }).picks(60), { own: 60, b: 0 });
});

t.test('the load that a zone can bear may be the sum of weights', async (t) => {
  const zones = [
    { zone: 'own', hosts: 2, hostWeight: 4 },
    { zone: 'b', hosts: 4, hostWeight: 1 },
  ];
  const local = [
    { zone: 'own', hosts: 2 },
    { zone: 'b', hosts: 2 },
  ];
  near(t, balancerOf(zones, { local, config: {} }).picks(6000), { own: 4000, b: 2000 }, 200);
  const config = zoneConfig({ locality_basis: 'HEALTHY_HOSTS_WEIGHT' });
  t.same(balancerOf(zones, { local, config }).picks(60), { own: 60, b: 0 });
});

t.test('a part of the requests can be routed by zone', async (t) => {
  const zones = [
    { zone: 'own', hosts: 3 },
    { zone: 'b', hosts: 3 },
  ];
  const config = zoneConfig({ routing_enabled: { value: 50 } });
  near(t, balancerOf(zones, { local: zones, config }).picks(4000), { own: 3000, b: 1000 }, 150);
});

t.test('the load balancers of many hosts are built in steps, by weight and by zone', async (t) => {
  const zones = [1, 2, 3].map((weight) => ({ zone: `z${weight}`, hosts: 5000, weight }));
  const { data, words } = hostsOf(zones, 1024 * 1024);
  const localCluster = new LocalCluster('me', OWN);
  const thread = { words, random: new Random(1), clock: { monotonicMs: 0 }, runtime: new Runtime(), locality: OWN };
  const policy = roundRobin as LoadBalancingPolicy;
  for (const [config, byZone] of [
    [WEIGHTED, undefined],
    [{}, { localCluster, stats: { increment: () => {} } }],
  ] as const) {
    const localities = policy.localities?.(config);
    const cluster = { policy, settings: undefined, localities, health: DEFAULT_HEALTH_POLICY };
    const balancer = new ClusterLoadBalancer(data, cluster, { ...thread, zones: byZone });
    const steps = [...balancer.prepare()].length;
    t.ok(steps >= 3, `${steps} steps`);
    t.ok(balancer.pick(thread.random) >= 0);
  }
});

t.test('the defaults of zone-aware routing are those of the API', async (t) => {
  t.same(localityBalancing({ zone_aware_lb_config: {} }), {
    isWeighted: false,
    failTrafficOnPanic: false,
    zones: { routingPercent: 100, minClusterSize: 6, forcedSize: undefined, countsWeights: false },
  });
});

function zoneConfig(zones: object): object {
  return { locality_lb_config: { zone_aware_lb_config: zones } };
}
