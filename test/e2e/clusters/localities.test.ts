// How requests are distributed over localities: by weight, and by zone.

import type { Test } from 'tap';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  loopback,
  startBaton,
  startUpstream,
  staticCluster,
} from '../harness/index.js';

/** Each host answers with its number. */
const hosts = await Promise.all(
  Array.from({ length: 9 }, (_, number) => startUpstream(t, (_request, response) => void response.end(`${number}`))),
);

/** Hosts of one zone, with the weight of the locality. */
interface Zone {
  readonly zone: string;
  /** Numbers of hosts; an unhealthy one is negative. */
  readonly hosts: readonly number[];
  readonly weight?: number;
  readonly priority?: number;
}

const WEIGHTED = { locality_weighted_lb_config: {} };
const OF_POLICIES = 'type.googleapis.com/envoy.extensions.load_balancing_policies';
/** Two of these servers are in zone a, one is in zone b. */
const PEERS = clusterOf('peers', [
  { zone: 'a', hosts: [0, 1] },
  { zone: 'b', hosts: [2] },
]);
const EVEN = [
  { zone: 'a', hosts: [0, 1, 2, 3] },
  { zone: 'b', hosts: [4, 5] },
];

besideEnvoy('localities get their share by weight, reduced by failed hosts', async (t, program) => {
  const zones = [
    { zone: 'a', hosts: [0, 1], weight: 1 },
    { zone: 'b', hosts: [2], weight: 3 },
    { zone: 'c', hosts: [3] },
  ];
  const failing = [
    { zone: 'a', hosts: [0, -1], weight: 10 },
    { zone: 'b', hosts: [2, 3], weight: 10 },
  ];
  const proxy = await start(t, program, [
    clusterOf('legacy', zones, { common_lb_config: WEIGHTED }),
    clusterOf('least', zones, policy('least_request.v3.LeastRequest', { locality_lb_config: WEIGHTED })),
    clusterOf('chance', zones, policy('random.v3.Random', { locality_lb_config: WEIGHTED })),
    clusterOf('failing', failing, policy('round_robin.v3.RoundRobin', { locality_lb_config: WEIGHTED })),
    clusterOf('unweighted', zones, {}),
  ]);
  for (const name of ['legacy', 'least', 'chance']) {
    const counts = await zoneCounts(proxy, name, zones, 80);
    // The schedule of localities begins at a random place.
    t.ok(Math.abs(counts['a']! - 20) <= 1 && counts['c'] === 0, `${name}: ${JSON.stringify(counts)}`);
  }
  const { a, b } = await zoneCounts(proxy, 'failing', failing, 170);
  t.ok(Math.abs(a! - 70) <= 2 && a! + b! === 170, `0.7 of the weight: ${a} and ${b}`);
  t.same(await zoneCounts(proxy, 'unweighted', zones, 80), { a: 40, b: 20, c: 20 });
});

besideEnvoy('weights of localities apply within the priority', async (t, program) => {
  const zones = [
    { zone: 'a', hosts: [-1], weight: 1 },
    { zone: 'b', hosts: [2], weight: 1, priority: 1 },
    { zone: 'c', hosts: [3], weight: 4, priority: 1 },
  ];
  const proxy = await start(t, program, [clusterOf('two', zones, { common_lb_config: WEIGHTED })]);
  const { a, b } = await zoneCounts(proxy, 'two', zones, 100);
  t.ok(a === 0 && Math.abs(b! - 20) <= 1, `${a} and ${b}`);
});

besideEnvoy('with policies that pick by hash, hosts of heavier localities get more hashes', async (t, program) => {
  const zones = [
    { zone: 'a', hosts: [0, 1, 2], weight: 1 },
    { zone: 'b', hosts: [3], weight: 3 },
  ];
  const options = { locality_weighted_lb_config: {} };
  const proxy = await start(t, program, [
    clusterOf('ring', zones, policy('ring_hash.v3.RingHash', { ...options, minimum_ring_size: 12_000 })),
    clusterOf('maglev', zones, policy('maglev.v3.Maglev', options)),
    clusterOf('legacy', zones, { lb_policy: 'RING_HASH', common_lb_config: WEIGHTED }),
    clusterOf('unweighted', EVEN, policy('ring_hash.v3.RingHash', options)),
  ]);
  for (const name of ['ring', 'maglev', 'legacy']) {
    const { a, b } = await zoneCounts(proxy, name, zones, 400);
    t.ok(Math.abs(b! - 300) < 60 && a! + b! === 400, `${name}: ${a} and ${b}`);
  }
  await proxy.waitForStat('cluster.ring.ring_hash_lb.size', 12_000);
  t.match(await proxy.stats('cluster.ring.ring_hash_lb.'), { min_hashes_per_host: 1000, max_hashes_per_host: 9000 });
  const { status, body } = await httpRequest(await proxy.listenerPort('web'), '/unweighted');
  t.same([status, body], [503, 'no healthy upstream'], 'no locality has a weight');
});

besideEnvoy('requests stay in the zone of the proxy as far as its hosts can bear them', async (t, program) => {
  const few = [
    { zone: 'a', hosts: [0, 1] },
    { zone: 'b', hosts: [2, 3, 4, 5] },
  ];
  const clusters = [
    clusterOf('even', EVEN),
    clusterOf('few', few),
    clusterOf('hashed', EVEN, { lb_policy: 'RING_HASH' }),
  ];
  const proxy = await start(t, program, [...clusters, PEERS], 'peers');
  t.same(await zoneCounts(proxy, 'even', EVEN, 60), { a: 60, b: 0 });
  await proxy.waitForStat('cluster.even.lb_zone_routing_all_directly', 60);
  t.ok((await proxy.stat('cluster.even.lb_recalculate_zone_structures'))! > 0);
  // The proxies of the zone send 2/3 of all requests, and its hosts can bear 1/3.
  const { a, b } = await zoneCounts(proxy, 'few', few, 600);
  t.ok(Math.abs(a! - 300) < 70 && a! + b! === 600, `${a} and ${b}`);
  const sampled = (await proxy.stat('cluster.few.lb_zone_routing_sampled'))!;
  t.same([sampled, await proxy.stat('cluster.few.lb_zone_routing_cross_zone')], [a, b]);
  t.ok((await zoneCounts(proxy, 'hashed', EVEN, 60))['b']! > 5, 'a hash decides, not the zone');
});

besideEnvoy('zone-aware routing has limits, and can be forced', async (t, program) => {
  const small = [
    { zone: 'a', hosts: [0] },
    { zone: 'b', hosts: [1, 2] },
  ];
  const zones = (fields: Config) =>
    policy('round_robin.v3.RoundRobin', { locality_lb_config: { zone_aware_lb_config: fields } });
  const proxy = await start(
    t,
    program,
    [
      PEERS,
      clusterOf('small', small, { common_lb_config: { zone_aware_lb_config: { min_cluster_size: 4 } } }),
      clusterOf('forced', small, zones({ min_cluster_size: 1, force_local_zone: {} })),
      clusterOf('unforced', small, zones({ min_cluster_size: 1, force_local_zone: { min_size: 2 } })),
      clusterOf('off', EVEN, zones({ routing_enabled: { value: 0 } })),
    ],
    'peers',
  );
  t.same(await zoneCounts(proxy, 'small', small, 60), { a: 20, b: 40 });
  t.ok((await proxy.stat('cluster.small.lb_zone_cluster_too_small'))! > 0);
  t.same(await zoneCounts(proxy, 'forced', small, 60), { a: 60, b: 0 });
  t.ok((await zoneCounts(proxy, 'unforced', small, 60))['b']! > 10);
  t.same(await zoneCounts(proxy, 'off', EVEN, 60), { a: 40, b: 20 });
});

async function start(t: Test, program: ProxyProgram, clusters: readonly Config[], local = ''): Promise<BatonProcess> {
  const routes = clusters.map(({ name }) => ({ match: { path: `/${name}` }, route: { cluster: name } }));
  const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
  const config = bootstrap({
    listeners: [httpListener('web', 0, { route_config })],
    clusters: [...clusters],
    extra: {
      node: { id: 'proxy', cluster: 'proxies', locality: { zone: 'a' } },
      ...(local !== '' && { cluster_manager: { local_cluster_name: local } }),
    },
  });
  return await startBaton(t, { ...program, config, args: ['--concurrency', '1'] });
}

/** Returns how many of some requests to a cluster each of its zones got. */
async function zoneCounts(proxy: BatonProcess, cluster: string, zones: readonly Zone[], requests: number) {
  const counts: Record<string, number> = Object.fromEntries(zones.map(({ zone }) => [zone, 0]));
  const port = await proxy.listenerPort('web');
  for (let request = 0; request < requests; request++) {
    const { body } = await httpRequest(port, `/${cluster}`);
    counts[zones.find(({ hosts }) => hosts.includes(Number(body)))!.zone]!++;
  }
  return counts;
}

function clusterOf(name: string, zones: readonly Zone[], more: Config = {}): Config {
  const endpoints = zones.map(({ hosts: numbers, priority = 0, weight, zone }) => ({
    locality: { zone },
    priority,
    ...(weight !== undefined && { load_balancing_weight: weight }),
    lb_endpoints: numbers.map((number) => ({
      endpoint: { address: loopback(hosts[Math.abs(number)]!.port) },
      health_status: number < 0 ? 'UNHEALTHY' : 'HEALTHY',
    })),
  }));
  return { ...staticCluster(name, []), load_assignment: { cluster_name: name, endpoints }, ...more };
}

function policy(message: string, fields: Config): Config {
  const typed_config = { '@type': `${OF_POLICIES}.${message}`, ...fields };
  return { load_balancing_policy: { policies: [{ typed_extension_config: { name: 'balancing', typed_config } }] } };
}
