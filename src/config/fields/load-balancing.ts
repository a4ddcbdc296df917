// How a cluster chooses hosts, as the message of a policy: the first one of load_balancing_policy that Baton has, or without it what
// lb_policy and the fields beside it mean.

import type { Any, Cluster } from '../generated/api.js';
import { typeUrlOf } from '../schema/message-name.js';
import type { Path } from '../text/path.js';

/** What a value of lb_policy means. */
interface LegacyPolicy {
  /** The message of the policy. */
  readonly message: string;
  /** The cluster's field with its options, which are called there as in the message. */
  readonly options?: { readonly field: string; of(cluster: Cluster): object | undefined };
  /** consistent_hashing_lb_config, which stands in common_lb_config, is one of its options. */
  readonly hashes?: true;
}

const OF_POLICIES = 'envoy.extensions.load_balancing_policies';

export const ROUND_ROBIN = `${OF_POLICIES}.round_robin.v3.RoundRobin`;

export const LEGACY_POLICIES: { readonly [lbPolicy: string]: LegacyPolicy } = {
  ROUND_ROBIN: { message: ROUND_ROBIN },
  LEAST_REQUEST: {
    message: `${OF_POLICIES}.least_request.v3.LeastRequest`,
    options: { field: 'least_request_lb_config', of: (cluster) => cluster.least_request_lb_config },
  },
  RANDOM: { message: `${OF_POLICIES}.random.v3.Random` },
  RING_HASH: {
    message: `${OF_POLICIES}.ring_hash.v3.RingHash`,
    options: { field: 'ring_hash_lb_config', of: (cluster) => cluster.ring_hash_lb_config },
    hashes: true,
  },
  MAGLEV: {
    message: `${OF_POLICIES}.maglev.v3.Maglev`,
    options: { field: 'maglev_lb_config', of: (cluster) => cluster.maglev_lb_config },
    hashes: true,
  },
};

/**
 * The message of the policy that counts. Of a cluster that is as it has to be: another one has ROUND_ROBIN.
 * @param isPolicy whether messages of that type configure a policy of this build
 */
export function policyMessage(cluster: Cluster, isPolicy: (typeUrl: string) => boolean): Any {
  const { load_balancing_policy: list } = cluster;
  if (list === undefined) return legacyPolicy(cluster).config;
  for (const policy of list.policies ?? []) {
    const config = policy?.typed_extension_config?.typed_config;
    if (config !== undefined && isPolicy(config['@type'])) return config;
  }
  return { '@type': typeUrlOf(ROUND_ROBIN) };
}

/** The policy of lb_policy. */
export function legacyPolicy(cluster: Cluster) {
  const { common_lb_config: common, lb_policy: name = 'ROUND_ROBIN' } = cluster;
  const { hashes, message, options } = LEGACY_POLICIES[name] ?? LEGACY_POLICIES['ROUND_ROBIN']!;
  const hashing = hashes && common?.consistent_hashing_lb_config;
  const config: Any = { '@type': typeUrlOf(message), ...options?.of(cluster), ...(hashing && { [HASHING]: hashing }) };
  return {
    config,
    /** Where a part of the message stands, from the cluster on. */
    placeOf(inner: Path): Path {
      if (inner[0] === HASHING) return ['common_lb_config', ...inner];
      return options === undefined ? inner : [options.field, ...inner];
    },
  };
}

const HASHING = 'consistent_hashing_lb_config';
