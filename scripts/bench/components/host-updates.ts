// How long an assignment of many endpoints blocks a thread: on the primary, which prepares the hosts, and on a worker, which
// applies them. `npm run build && node dist/scripts/bench/components/host-updates.js [hosts]`

import { deserialize, serialize } from 'node:v8';
import { Random } from '../../../src/common/random.js';
import type { ClusterLoadAssignment } from '../../../src/config/generated/api.js';
import { leastRequest } from '../../../src/extensions/load-balancing-policies/least-request/index.js';
import { random as randomPolicy } from '../../../src/extensions/load-balancing-policies/random/index.js';
import { roundRobin } from '../../../src/extensions/load-balancing-policies/round-robin/index.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import { ClusterStats, HostStats } from '../../../src/stats/layouts/cluster.js';
import { StatsStore } from '../../../src/stats/store.js';
import { endpointSpecs, staticEndpoint } from '../../../src/upstream/discovery-config.js';
import { Host } from '../../../src/upstream/hosts/host.js';
import { HostDirectory } from '../../../src/upstream/hosts/host-directory.js';
import { HostSet, type HostSetData } from '../../../src/upstream/hosts/host-set.js';
import { ClusterLoadBalancer } from '../../../src/upstream/load-balancer/cluster-load-balancer.js';
import { DEFAULT_HEALTH_POLICY } from '../../../src/upstream/load-balancer/health-parts.js';
import type { LoadBalancingPolicy } from '../../../src/upstream/load-balancer/policy.js';
import { SharedWordsOwner } from '../../../src/upstream/shared-words.js';
import { cpuMs } from './cpu-time.js';

const HOSTS = Number(process.argv[2] ?? 10_000);
const ROUNDS = 15;

const store = new StatsStore({ workers: 1 });
const owner = new SharedWordsOwner();
const scope = store.addScope('cluster.c.', ClusterStats);
const words = new Int32Array(owner.handle(1).words);
const random = new Random(1);
const thread = {
  words,
  random,
  clock: { monotonicMs: 0 },
  runtime: new Runtime(),
  locality: undefined,
  zones: undefined,
};

function assignment(first: number, weightOf: (host: number) => number): ClusterLoadAssignment {
  const lb_endpoints = Array.from({ length: HOSTS }, (_, at) => {
    const host = first + at;
    const address = `10.${(host >> 16) & 255}.${(host >> 8) & 255}.${host & 255}`;
    return {
      load_balancing_weight: weightOf(at),
      endpoint: { address: { socket_address: { address, port_value: 80 } } },
    };
  });
  return { cluster_name: 'c', endpoints: [{ lb_endpoints }] };
}

const directory = new HostDirectory({
  allocate: (address) => {
    const scope = store.addScope(`cluster.c.host.${address}.`, HostStats, { hidden: true });
    return { block: owner.allocateHost(), scope };
  },
  retire: ({ block: retired }) => owner.retireHost(retired, 0),
});

function primary(what: string, make: (round: number) => ClusterLoadAssignment, rounds: number): void {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const given = make(round);
    const start = cpuMs();
    directory.update(endpointSpecs(given).flatMap((endpoint) => staticEndpoint(endpoint) ?? []));
    times.push(cpuMs() - start);
  }
  report(`primary: ${what}`, times);
}

/** Measures each step of preparing hosts; the primary does other work between the steps. */
function steps(what: string, given: ClusterLoadAssignment): void {
  const times: number[] = [];
  const preparation = directory
    .prepare()
    .steps(endpointSpecs(given).flatMap((endpoint) => staticEndpoint(endpoint) ?? []));
  for (let isDone = false; !isDone; ) {
    const start = cpuMs();
    isDone = preparation.next().done === true;
    times.push(cpuMs() - start);
  }
  report(`primary: ${what}, ${times.length} of them`, times);
}

/** Measures how long a worker that has used all of its hosts takes to apply a new list of them. */
function worker(policy: LoadBalancingPolicy): void {
  const settings = policy.settings?.({});
  const cluster = { policy, settings, localities: undefined, health: DEFAULT_HEALTH_POLICY };
  const times: number[] = [];
  let hosts: HostSet<Host> | undefined;
  for (let round = 0; round < ROUNDS; round++) {
    const message = serialize(directory.data);
    const start = cpuMs();
    const data = deserialize(message) as HostSetData;
    hosts = new HostSet<Host>(data, make, hosts);
    const balancer = new ClusterLoadBalancer(data, cluster, thread);
    hosts.takeRemoved();
    hosts.host(balancer.pick(random));
    times.push(cpuMs() - start);
    for (let index = 0; index < HOSTS; index++) hosts.host(index);
  }
  report(`worker: ${policy.name.replace(/.*\./, '')}`, times);
}

function make(set: HostSet<Host>, index: number): Host {
  const { statsBases, statsChunks } = set.data;
  const at = { ...scope, chunk: statsChunks[index]!, base: statsBases[index]! };
  return new Host(set.data.blocks[index]!, set.describe(index), set.sockaddr(index), store.scope(at));
}

function report(what: string, times: readonly number[]): void {
  const sorted = [...times].sort((a, b) => a - b);
  const median = sorted[sorted.length >> 1]!;
  console.log(`${what.padEnd(48)} median ${median.toFixed(2)} ms, worst ${sorted.at(-1)!.toFixed(2)} ms`);
}

const POLICIES = [roundRobin, randomPolicy, leastRequest as LoadBalancingPolicy];

console.log(`${HOSTS} hosts`);
steps(
  'the steps for new hosts',
  assignment(0, () => 1),
);
primary('the update that takes the prepared hosts', () => assignment(0, () => 1), 1);
primary('nothing changed', () => assignment(0, () => 1), ROUNDS);
primary('the weight of one host changed', (round) => assignment(0, (host) => (host === 0 ? round + 2 : 1)), ROUNDS);
primary('one host added, one removed', (round) => assignment(round + 1, () => 1), ROUNDS);
for (const policy of POLICIES) worker(policy);
directory.update(
  endpointSpecs(assignment(0, (host) => 1 + (host % 7))).flatMap((endpoint) => staticEndpoint(endpoint) ?? []),
);
console.log('with different weights');
for (const policy of POLICIES) worker(policy);
