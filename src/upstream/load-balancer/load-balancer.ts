// What a load balancer is: it picks one of a list of hosts.
//
// Pickers know weights and active requests only. Which hosts they choose from, by health and priority, is decided by
// ClusterLoadBalancer, which makes them.

import type { Random } from '../../common/random.js';

export interface LoadBalancer {
  /** Index of a host in its host set, or -1 when no host may be used. */
  pick(random: Random): number;
}

/** A cluster's load-balancing policy with its parameters; plain data. */
export type LoadBalancerSpec =
  | { readonly policy: 'round_robin' }
  | {
      readonly policy: 'least_request';
      readonly choiceCount: number;
      readonly activeRequestBias: { readonly runtimeKey: string; readonly value: number };
    }
  | { readonly policy: 'random' };

/** A list to pick from, not empty. */
export interface PickList {
  /** Indexes in the host set. */
  readonly hosts: Int32Array;
  /** Weight of each, at least 1. */
  readonly weights: Uint32Array;
  /** Word that holds the active requests of each. */
  readonly activeWords: Int32Array;
}
