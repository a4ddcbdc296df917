// How a cluster chooses hosts: by the first policy of load_balancing_policy that Baton has, or without it by lb_policy.

import type { Any, Cluster, Cluster_LeastRequestLbConfig, Maglev, RingHash } from '../generated/api.js';
import { messageNameOf } from '../schema/message-name.js';
import type { Path } from '../text/path.js';

export interface LoadBalancing {
  readonly policy: 'ROUND_ROBIN' | 'LEAST_REQUEST' | 'RANDOM' | 'RING_HASH' | 'MAGLEV';
  /** What is said to that policy. */
  readonly options: LoadBalancingOptions;
  /** Where that stands, from the cluster on. */
  readonly path: Path;
}

/** Those of all policies, as far as the messages of both fields have them. */
export interface LoadBalancingOptions
  extends Pick<Cluster_LeastRequestLbConfig, 'choice_count' | 'active_request_bias'>,
    Pick<RingHash, 'minimum_ring_size' | 'maximum_ring_size'>,
    Pick<Maglev, 'table_size'> {
  /** Hosts are known by their names where they are chosen by hash. */
  readonly usesHostname: boolean;
}

const POLICIES: { readonly [message: string]: LoadBalancing['policy'] } = {
  'envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin': 'ROUND_ROBIN',
  'envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest': 'LEAST_REQUEST',
  'envoy.extensions.load_balancing_policies.random.v3.Random': 'RANDOM',
  'envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash': 'RING_HASH',
  'envoy.extensions.load_balancing_policies.maglev.v3.Maglev': 'MAGLEV',
};

/** The options of lb_policy, each with the policy that they are for and their field. */
export function policyOptions(cluster: Cluster) {
  return [
    { policy: 'LEAST_REQUEST', field: 'least_request_lb_config', options: cluster.least_request_lb_config },
    { policy: 'RING_HASH', field: 'ring_hash_lb_config', options: cluster.ring_hash_lb_config },
    { policy: 'MAGLEV', field: 'maglev_lb_config', options: cluster.maglev_lb_config },
  ] as const;
}

/** Of a cluster that is as it has to be: another one is taken for ROUND_ROBIN. */
export function loadBalancing(cluster: Cluster): LoadBalancing {
  const { load_balancing_policy: list, lb_policy: policy = 'ROUND_ROBIN', common_lb_config: common } = cluster;
  if (list === undefined) {
    const usesHostname = common?.consistent_hashing_lb_config?.use_hostname_for_hashing ?? false;
    const own = policyOptions(cluster).find((each) => each.policy === policy);
    if (own !== undefined) return { policy: own.policy, options: { ...own.options, usesHostname }, path: [own.field] };
    return { policy: policy === 'RANDOM' ? policy : 'ROUND_ROBIN', options: { usesHostname }, path: [] };
  }
  for (const [index, entry] of (list.policies ?? []).entries()) {
    const config: (Any & Partial<RingHash>) | undefined = entry?.typed_extension_config?.typed_config;
    const chosen = config && POLICIES[messageNameOf(config['@type'])];
    if (chosen === undefined) continue;
    const path = ['load_balancing_policy', 'policies', index, 'typed_extension_config', 'typed_config'];
    const hashing = config!.consistent_hashing_lb_config ?? config!;
    return { policy: chosen, options: { ...config, usesHostname: hashing.use_hostname_for_hashing ?? false }, path };
  }
  return { policy: 'ROUND_ROBIN', options: { usesHostname: false }, path: [] };
}

/** How many places a ring has at least, and at most. */
export function ringSizes(options: LoadBalancingOptions): { readonly minSize: number; readonly maxSize: number } {
  return {
    minSize: Number(options.minimum_ring_size ?? 1024),
    maxSize: Number(options.maximum_ring_size ?? 8 * 1024 * 1024),
  };
}

/** How many entries a table has, a prime. */
export function tableSize(options: LoadBalancingOptions): number {
  return Number(options.table_size ?? 65_537);
}
