// The load-balancing policy of a cluster as a message: the first implemented one of load_balancing_policy, or else the
// equivalent of lb_policy and the fields that belong to it.

import type {
  Any,
  Cluster,
  Cluster_CommonLbConfig,
  LoadBalancingPolicy,
  LocalityLbConfig,
  Subset,
} from '../generated/api.js';
import { typeUrlOf } from '../schema/message-name.js';
import type { Path } from '../text/path.js';

/** The equivalent of an lb_policy value. */
interface LegacyPolicy {
  /** The message of the policy. */
  readonly message: string;
  /** The cluster's field with the options, which have the same names as in the message. */
  readonly options?: { readonly field: string; of(cluster: Cluster): object | undefined };
  /** Whether it picks by hash: its options in common_lb_config are consistent_hashing_lb_config and weights of localities. */
  readonly hashes?: true;
}

const OF_POLICIES = 'envoy.extensions.load_balancing_policies';

export const ROUND_ROBIN = `${OF_POLICIES}.round_robin.v3.RoundRobin`;

export const SUBSET = `${OF_POLICIES}.subset.v3.Subset`;

export const OVERRIDE_HOST = `${OF_POLICIES}.override_host.v3.OverrideHost`;

/** The cluster itself determines the host of each request. */
export const CLUSTER_PROVIDED = `${OF_POLICIES}.cluster_provided.v3.ClusterProvided`;

export const LEGACY_POLICIES: { readonly [lbPolicy: string]: LegacyPolicy } = {
  ROUND_ROBIN: {
    message: ROUND_ROBIN,
    options: { field: 'round_robin_lb_config', of: (cluster) => cluster.round_robin_lb_config },
  },
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
  CLUSTER_PROVIDED: { message: CLUSTER_PROVIDED },
};

/**
 * Returns the message of the effective policy. Invalid clusters get ROUND_ROBIN.
 * @param isPolicy whether messages of that type configure a policy of this build
 */
export function policyMessage(cluster: Cluster, isPolicy: (typeUrl: string) => boolean): Any {
  const { load_balancing_policy: list } = cluster;
  if (list !== undefined) return firstPolicy(list, isPolicy);
  const { config } = legacyPolicy(cluster);
  return subsetPolicy(cluster, config) ?? config;
}

/** Returns the first implemented policy of a list. Invalid lists get ROUND_ROBIN. */
export function firstPolicy(list: LoadBalancingPolicy | undefined, isPolicy: (typeUrl: string) => boolean): Any {
  for (const policy of list?.policies ?? []) {
    const config = policy?.typed_extension_config?.typed_config;
    if (config !== undefined && isPolicy(config['@type'])) return config;
  }
  return { '@type': typeUrlOf(ROUND_ROBIN) };
}

/** Returns the equivalent of lb_subset_config around the policy `inner`. Returns undefined without selectors: then it has no effect. */
export function subsetPolicy({ lb_subset_config: config }: Cluster, inner: Any): (Any & Subset) | undefined {
  if (config === undefined || (config.subset_selectors ?? []).length === 0) return undefined;
  const policies = [{ typed_extension_config: { name: 'lb_policy', typed_config: inner } }];
  return { '@type': typeUrlOf(SUBSET), ...config, subset_lb_policy: { policies } };
}

/** Returns the policy of lb_policy. */
export function legacyPolicy(cluster: Cluster) {
  const { common_lb_config: common, lb_policy: name = 'ROUND_ROBIN' } = cluster;
  const { hashes, message, options } = LEGACY_POLICIES[name] ?? LEGACY_POLICIES['ROUND_ROBIN']!;
  const ofCommon = hashes ? hashingOptions(common) : localityOptions(common);
  const config: Any = { '@type': typeUrlOf(message), ...options?.of(cluster), ...ofCommon };
  return {
    config,
    /** Maps a path within the message to a path within the cluster. */
    placeOf(inner: Path): Path {
      if (inner[0] === LOCALITIES) return ['common_lb_config', ...inner.slice(1)];
      if (inner[0]! in ofCommon) return ['common_lb_config', ...inner];
      return options === undefined ? inner : [options.field, ...inner];
    },
  };
}

const LOCALITIES = 'locality_lb_config';

function localityOptions(common: Cluster_CommonLbConfig = {}): { readonly [LOCALITIES]?: LocalityLbConfig } {
  const { locality_weighted_lb_config: weighted, zone_aware_lb_config: zones } = common;
  if (weighted !== undefined) return { [LOCALITIES]: { locality_weighted_lb_config: weighted } };
  return zones === undefined ? {} : { [LOCALITIES]: { zone_aware_lb_config: zones } };
}

function hashingOptions(common: Cluster_CommonLbConfig = {}) {
  const { consistent_hashing_lb_config: hashing, locality_weighted_lb_config: weighted } = common;
  return {
    ...(hashing && { consistent_hashing_lb_config: hashing }),
    ...(weighted && { locality_weighted_lb_config: weighted }),
  };
}
