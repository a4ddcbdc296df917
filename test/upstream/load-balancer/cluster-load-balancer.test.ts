import t from 'tap';
import { Random } from '../../../src/common/random.js';
import { Word64, xxh64Text } from '../../../src/common/xxh64.js';
import { leastRequest } from '../../../src/extensions/load-balancing-policies/least-request/index.js';
import { random as randomPolicy } from '../../../src/extensions/load-balancing-policies/random/index.js';
import { ringHash } from '../../../src/extensions/load-balancing-policies/ring-hash/index.js';
import { roundRobin } from '../../../src/extensions/load-balancing-policies/round-robin/index.js';
import { ipAddress } from '../../../src/io/addresses/address.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import { endpointHealthFlags, HealthFlag } from '../../../src/upstream/hosts/health-flags.js';
import type { ResolvedEndpoint } from '../../../src/upstream/hosts/host.js';
import { HostDirectory } from '../../../src/upstream/hosts/host-directory.js';
import { ClusterLoadBalancer } from '../../../src/upstream/load-balancer/cluster-load-balancer.js';
import { DEFAULT_HEALTH_POLICY, type HealthPolicy } from '../../../src/upstream/load-balancer/health-parts.js';
import type { LoadBalancingPolicy } from '../../../src/upstream/load-balancer/policy.js';
import { HostWord, SharedWords, SharedWordsOwner } from '../../../src/upstream/shared-words.js';
import { setValues } from '../../runtime/values.js';

/** A policy with its message. */
interface Chosen {
  readonly policy: LoadBalancingPolicy;
  readonly settings: unknown;
}

function chosen<C, S>(policy: LoadBalancingPolicy<C, S>, config: C): Chosen {
  return { policy: policy as LoadBalancingPolicy, settings: policy.settings?.(config) };
}

function clusterOf(
  endpoints: Partial<ResolvedEndpoint>[],
  health: HealthPolicy = DEFAULT_HEALTH_POLICY,
  { policy, settings }: Chosen = chosen(roundRobin, {}),
) {
  const runtime = new Runtime();
  const owner = new SharedWordsOwner(8192);
  const directory = new HostDirectory({
    allocate: () => ({ block: owner.allocateHost(), scope: { prefix: '', layout: 0, chunk: 0, base: 0 } }),
    retire: () => {},
  });
  directory.update(
    endpoints.map((endpoint, i) => ({
      address: ipAddress(`10.0.0.${i}`, 80)!,
      hostname: '',
      weight: 1,
      priority: 0,
      locality: { region: '', zone: '', subZone: '' },
      healthFlags: 0,
      isCanary: false,
      ...endpoint,
    })),
  );
  const { words } = new SharedWords(owner.handle(0));
  const random = new Random(5);
  const thread = { words, random, clock: { monotonicMs: 0 }, runtime, locality: undefined, zones: undefined };
  const balancer = new ClusterLoadBalancer(directory.data, { policy, settings, localities: undefined, health }, thread);
  const picks = (count = 300) => {
    const counts = endpoints.map(() => 0);
    for (let i = 0; i < count; i++) {
      const host = balancer.pick(random);
      if (host >= 0) counts[host]!++;
    }
    return counts;
  };
  const setActive = (host: number, requests: number) => {
    words[directory.data.blocks[host]! + HostWord.ActiveRequests] = requests;
  };
  return { balancer, picks, setActive, random, runtime };
}

t.test('weights may be as large as the configuration permits', async (t) => {
  for (const policy of [chosen(roundRobin, {}), chosen(leastRequest, {}), chosen(randomPolicy, {})]) {
    const { picks } = clusterOf([{ weight: 3_000_000_000 }, { weight: 1_000_000_000 }], DEFAULT_HEALTH_POLICY, policy);
    const [heavy, light] = picks(4000);
    t.ok(Math.abs(heavy! - 3 * light!) < 400, `${policy.policy.name}: ${heavy} and ${light}`);
  }
});

t.test('a cluster without hosts picks none', async (t) => {
  const { balancer, random } = clusterOf([]);
  t.equal(balancer.pick(random), -1);
});

t.test('endpoints that are configured as unhealthy or draining get no requests', async (t) => {
  const { picks } = clusterOf([
    {},
    { healthFlags: endpointHealthFlags('UNHEALTHY') },
    {},
    { healthFlags: endpointHealthFlags('DRAINING') },
    {},
  ]);
  t.same(picks(), [100, 0, 100, 0, 100]);
});

t.test('below the panic threshold all hosts are used, unless panic fails traffic or is disabled', async (t) => {
  const failed = { healthFlags: HealthFlag.FailedOutlierCheck };
  const panic = clusterOf([failed, failed, {}]);
  t.same(panic.picks(), [100, 100, 100]);
  t.ok(panic.balancer.pickedInPanic);
  const off = clusterOf([failed, failed, {}], { ...DEFAULT_HEALTH_POLICY, panicThreshold: 0 });
  t.same(off.picks(), [0, 0, 300]);
  t.notOk(off.balancer.pickedInPanic);
  const none = clusterOf([failed, failed], { ...DEFAULT_HEALTH_POLICY, panicThreshold: 0 });
  t.same(none.picks(), [0, 0]);
  const failing = clusterOf([failed, failed, {}], { ...DEFAULT_HEALTH_POLICY, failTrafficOnPanic: true });
  t.same(failing.picks(), [0, 0, 0]);
  t.ok(failing.balancer.pickedInPanic);
});

t.test('draining endpoints neither cause panic nor spill traffic to the next priority', async (t) => {
  const draining = { healthFlags: endpointHealthFlags('DRAINING') };
  const { picks, balancer } = clusterOf([{}, draining, draining]);
  t.same(picks(), [300, 0, 0]);
  t.notOk(balancer.pickedInPanic);
  t.same(clusterOf([{}, draining, { priority: 1 }]).picks(), [300, 0, 0]);
  const last = clusterOf([draining, draining]);
  t.same(last.picks(), [150, 150], 'but for panic, there is nobody');
  t.ok(last.balancer.pickedInPanic);
});

t.test('runtime changes the panic threshold and the request bias under traffic', async (t) => {
  const failed = { healthFlags: HealthFlag.FailedOutlierCheck };
  const { picks, runtime } = clusterOf([failed, failed, {}]);
  t.same(picks(), [100, 100, 100]);
  setValues(runtime, { 'upstream.healthy_panic_threshold': '20' });
  t.same(picks(), [0, 0, 300]);
  setValues(runtime, {});
  t.same(picks(), [100, 100, 100]);

  const biased = chosen(leastRequest, { active_request_bias: { runtime_key: 'bias', default_value: 0 } });
  const busy = clusterOf([{ weight: 1 }, { weight: 3 }], DEFAULT_HEALTH_POLICY, biased);
  busy.setActive(1, 5);
  t.same(busy.picks(400), [100, 300]);
  for (const bias of ['1.0', '-1']) {
    setValues(busy.runtime, { bias });
    const [light, heavy] = busy.picks(300) as [number, number];
    t.ok(Math.abs(light - 200) <= 3 && Math.abs(heavy - 100) <= 3, `bias ${bias}: ${light}, ${heavy}`);
  }
});

t.test('traffic fails over to the next priority, and degraded hosts are used last', async (t) => {
  const failed = { healthFlags: HealthFlag.FailedEdsHealth };
  const others = [{ priority: 1 }, { priority: 1 }];
  t.same(clusterOf([{}, {}, ...others]).picks(), [150, 150, 0, 0]);
  const [, second, third, fourth] = clusterOf([failed, {}, ...others]).picks(10_000) as [
    number,
    number,
    number,
    number,
  ];
  t.ok(Math.abs(second - 7000) < 300 && Math.abs(third - fourth) <= 1, `${second} ${third} ${fourth}`);
  t.same(clusterOf([failed, failed, ...others]).picks(), [0, 0, 150, 150]);
  for (const healthFlags of [endpointHealthFlags('DEGRADED'), HealthFlag.DegradedActiveHealthCheck]) {
    const [healthy, spilled] = clusterOf([{}, { healthFlags }]).picks(10_000) as [number, number];
    t.ok(Math.abs(healthy - 7000) < 300 && healthy + spilled === 10_000, `${healthy} ${spilled}`);
  }
});

t.test('requests with the same hash go to the same priority and host', async (t) => {
  const { balancer, random } = clusterOf(
    [{}, { healthFlags: HealthFlag.FailedActiveHealthCheck }, { priority: 1 }, { priority: 1 }],
    DEFAULT_HEALTH_POLICY,
    chosen(ringHash, { maximum_ring_size: '1024' }),
  );
  const hash = new Word64();
  const used = new Map<number, number>();
  for (let i = 0; i < 1000; i++) {
    hash.set(random.nextInt32(), random.nextInt32());
    const host = balancer.pick(random, hash);
    t.equal(balancer.pick(random, hash), host);
    used.set(host, (used.get(host) ?? 0) + 1);
  }
  t.same([...used.keys()].sort(), [0, 2, 3], 'a host that is not healthy gets none');
  t.ok(Math.abs(used.get(0)! - 700) < 60, 'half of its hosts bear 70 % of what goes to priority 0');
});

t.test('host keys are the hash_key, the hostname or the address', async (t) => {
  const keyed = { filter_metadata: { 'envoy.lb': { hash_key: 'own' } } };
  const hosts = [{ metadata: keyed, hostname: 'a' }, { hostname: 'b' }, {}];
  const hash = new Word64();
  for (const [usesHostname, keys] of [
    [true, ['own', 'b', '10.0.0.2:80']],
    [false, ['own', '10.0.0.1:80', '10.0.0.2:80']],
  ] as const) {
    const ring = { minimum_ring_size: '3', maximum_ring_size: '3', use_hostname_for_hashing: usesHostname };
    const { balancer, random } = clusterOf(hosts, DEFAULT_HEALTH_POLICY, chosen(ringHash, ring));
    for (const [host, key] of keys.entries()) {
      xxh64Text(`${key}_0`, hash);
      t.equal(balancer.pick(random, hash), host, `${key} has its place`);
    }
  }
});

t.test('a large ring is rebuilt in steps after a runtime change, while the old one serves', async (t) => {
  const { balancer, random, runtime } = clusterOf(
    [{}, { healthFlags: HealthFlag.FailedActiveHealthCheck }, { healthFlags: HealthFlag.FailedActiveHealthCheck }],
    { ...DEFAULT_HEALTH_POLICY, panicThreshold: 0 },
    chosen(ringHash, { minimum_ring_size: '100000', maximum_ring_size: '100000' }),
  );
  t.equal(balancer.pick(random), 0);
  setValues(runtime, { 'upstream.healthy_panic_threshold': '100' });
  let before = 0;
  while (balancer.pick(random) === 0 && !balancer.pickedInPanic) before++;
  t.ok(before > 5, `${before} requests before it is ready`);
  setValues(runtime, { 'upstream.healthy_panic_threshold': '0' });
  for (let request = 0; request < 3; request++) balancer.pick(random);
  setValues(runtime, { 'upstream.healthy_panic_threshold': '100' });
  for (let request = 0; request < 20 * before; request++) balancer.pick(random);
  t.ok(balancer.pickedInPanic, 'changes during the rebuild are applied in the end');
});
