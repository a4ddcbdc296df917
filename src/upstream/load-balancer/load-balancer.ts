// The interface of a load balancer, which picks a host from a list.
//
// It uses only weights, active requests and keys. ClusterLoadBalancer selects the list by health and priority, and has the
// cluster's policy create the load balancer.

import type { Random } from '../../common/random.js';
import type { Word64 } from '../../common/xxh64.js';
import type { MetadataMatch } from '../../http/routing/actions/metadata-match.js';

export interface LoadBalancer {
  /**
   * Returns the index of a host in its host set, or -1 when no host may be used.
   * @param hash of the request, for hashing policies: equal hashes get the same host
   * @param attempt number of hosts that have failed the request already: the same hash gets another host
   */
  pick(random: Random, hash?: Word64, attempt?: number): number;
}

/** The load balancer of a whole cluster. */
export interface ClusterBalancer {
  /** Whether the last pick ignored health, for lb_healthy_panic. */
  readonly pickedInPanic: boolean;
  /** See LoadBalancer. `match`: what the host's metadata must have, in a cluster with subsets; undefined: no requirement. */
  pick(random: Random, hash?: Word64, attempt?: number, match?: MetadataMatch): number;
  /** Builds what pick() needs in steps, because that may take long. If not called, the first pick() builds it at once. */
  prepare(): Generator<void, void>;
}

/** The hosts to choose from. */
export interface HostList {
  /** Indexes in the host set. */
  readonly hosts: Int32Array;
  /** Weight of each, at least 1. */
  readonly weights: Uint32Array;
  /**
   * With locality weights, for policies that pick by hash: the share of all requests that each host gets, in place of its weight.
   * Their sum is at most 1.
   */
  readonly shares?: Float64Array | undefined;
  /**
   * Monotonic time at which each host was added or passed its health checks again; -Infinity for hosts that are not healthy.
   * Undefined unless the policy needs it.
   */
  readonly healthySinceMs?: Float64Array | undefined;
  /** Their weights differ. */
  readonly isWeighted: boolean;
  /** Index of the shared word that holds the active requests of each. */
  readonly activeWords: Int32Array;
  /**
   * Returns the key of each host, which is stable across updates: one character per byte.
   * @param usesHostname prefer hostnames to addresses
   */
  keys(usesHostname: boolean): readonly string[];
}
