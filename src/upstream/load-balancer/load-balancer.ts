// What a load balancer is: it picks one of a list of hosts.
//
// It knows weights, active requests and keys only. Which hosts it chooses from, by health and priority, is decided by
// ClusterLoadBalancer, which has it made by the cluster's policy.

import type { Random } from '../../common/random.js';
import type { Word64 } from '../../common/xxh64.js';

export interface LoadBalancer {
  /**
   * Index of a host in its host set, or -1 when no host may be used.
   * @param hash of what requests have in common that are to go to one host; of interest where the policy is one of hashes
   * @param attempt how many other hosts the request has been offered in vain: the same hash gives another one
   */
  pick(random: Random, hash?: Word64, attempt?: number): number;
}

/** Hosts to choose from. */
export interface HostList {
  /** Indexes in the host set. */
  readonly hosts: Int32Array;
  /** Weight of each, at least 1. */
  readonly weights: Uint32Array;
  /** Their weights differ. */
  readonly isWeighted: boolean;
  /** Index of the shared word that holds the active requests of each. */
  readonly activeWords: Int32Array;
  /**
   * What each host is known by, whatever else changes: one character a byte.
   * @param usesHostname by their names rather than by their addresses
   */
  keys(usesHostname: boolean): readonly string[];
}
