// Test hosts, and load balancers over them.

import { Random } from '../../../src/common/random.js';
import { runSync } from '../../../src/common/time/next-turn.js';
import { Word64, xxh64Text } from '../../../src/common/xxh64.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import type { HostList, LoadBalancer } from '../../../src/upstream/load-balancer/load-balancer.js';
import type { LoadBalancingPolicy } from '../../../src/upstream/load-balancer/policy.js';

export interface TestHost {
  readonly key: string;
  readonly weight?: number;
}

/** Hosts 100, 101 … with these weights and keys; active requests in words 0, 1 …. */
export function hostList(hosts: readonly TestHost[]): HostList {
  const weights = Uint32Array.from(hosts, ({ weight = 1 }) => weight);
  return {
    hosts: Int32Array.from(hosts, (_, i) => 100 + i),
    weights,
    isWeighted: weights.some((weight) => weight !== weights[0]),
    activeWords: Int32Array.from(hosts, (_, i) => i),
    keys: () => hosts.map(({ key }) => key),
  };
}

export function hostsOf(count: number, weight: (index: number) => number = () => 1): TestHost[] {
  return Array.from({ length: count }, (_, i) => ({ key: `10.0.${i >> 8}.${i & 255}:80`, weight: weight(i) }));
}

const THREAD = { clock: { monotonicMs: 0 }, runtime: new Runtime() };

/** Creates a load balancer over hosts with these weights, with the shared words that count active requests. */
export function balancerOf<C, S>(
  policy: LoadBalancingPolicy<C, S>,
  config: C,
  weights: readonly number[],
  random = new Random(1),
) {
  const words = new Int32Array(new SharedArrayBuffer(4 * weights.length));
  const settings = policy.settings?.(config) as S;
  const runtimeNumber = policy.runtimeNumber?.(settings).value ?? 0;
  const hosts = hostList(hostsOf(weights.length, (index) => weights[index]!));
  const balancer = finished(policy.createLoadBalancer(settings, hosts, { ...THREAD, words, random, runtimeNumber }));
  return { words, pick: () => balancer.pick(random) - 100 };
}

/** Creates a hashing load balancer whose picks are host keys. */
export function hashBalancerOf<C, S>(policy: LoadBalancingPolicy<C, S>, config: C, hosts: readonly TestHost[]) {
  const random = new Random(7);
  const context = { ...THREAD, words: new Int32Array(), random, runtimeNumber: 0 };
  const settings = policy.settings?.(config) as S;
  const balancer = finished(policy.createLoadBalancer(settings, hostList(hosts), context));
  const hash = new Word64();
  const keyOf = (index: number) => hosts[index - 100]!.key;
  return {
    at: (number: bigint, attempt?: number) => {
      hash.set(Number(number >> 32n), Number(number & 0xffffffffn));
      return keyOf(balancer.pick(random, hash, attempt));
    },
    of: (text: string, attempt?: number) => {
      xxh64Text(text, hash);
      return keyOf(balancer.pick(random, hash, attempt));
    },
    any: () => keyOf(balancer.pick(random)),
  };
}

/** Counts how often each host is picked. */
export function tally(pick: () => number, picks: number, hosts: number): number[] {
  const counts = new Array<number>(hosts).fill(0);
  for (let i = 0; i < picks; i++) counts[pick()]!++;
  return counts;
}

/** The hosts of a test in Envoy: test/extensions/load_balancing_policies/ring_hash/ring_hash_lb_test.cc */
export const PORTS = [90, 91, 92, 93, 94, 95].map((port) => ({ key: `127.0.0.1:${port}` }));

function finished(balancer: LoadBalancer | Generator<void, LoadBalancer>): LoadBalancer {
  return 'next' in balancer ? runSync(balancer) : balancer;
}
