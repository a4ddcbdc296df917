// What a load balancer is: it picks one of a list of hosts.
//
// Pickers know weights, active requests and keys only. Which hosts they choose from, by health and priority, is decided by
// ClusterLoadBalancer, which makes them.

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

/** A cluster's load-balancing policy with its parameters; plain data. */
export type LoadBalancerSpec = PlainSpec | HashSpec;

/** Each request is as good as any other. */
export type PlainSpec =
  | { readonly policy: 'round_robin' }
  | {
      readonly policy: 'least_request';
      readonly choiceCount: number;
      readonly activeRequestBias: { readonly runtimeKey: string; readonly value: number };
    }
  | { readonly policy: 'random' };

/** Requests of one hash go to one host; those without go to any. */
export type HashSpec = {
  /** Hosts are known by their names rather than by their addresses. */
  readonly usesHostname: boolean;
} & (({ readonly policy: 'ring_hash' } & RingSize) | { readonly policy: 'maglev'; readonly tableSize: number });

/** How many places all hosts together have on a ring. */
export interface RingSize {
  readonly minSize: number;
  readonly maxSize: number;
}

export function isHashSpec(spec: LoadBalancerSpec): spec is HashSpec {
  return spec.policy === 'ring_hash' || spec.policy === 'maglev';
}

/** A list to pick from, not empty. */
export interface PickList {
  /** Indexes in the host set. */
  readonly hosts: Int32Array;
  /** Weight of each, at least 1. */
  readonly weights: Uint32Array;
  /** Word that holds the active requests of each. */
  readonly activeWords: Int32Array;
}

/** A list to pick from by hash, not empty. */
export interface HashedList {
  readonly hosts: Int32Array;
  readonly weights: Uint32Array;
  /** What each host is known by, whatever else changes: one character a byte. */
  readonly keys: readonly string[];
}
