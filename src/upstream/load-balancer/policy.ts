// A load-balancing policy: what clusters and threads ask of it. Policies are extensions; here they are known by this interface only.

import type { Random } from '../../common/random.js';
import type { Any } from '../../config/generated/api.js';
import type { Layout } from '../../stats/layout.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { HostList, LoadBalancer } from './load-balancer.js';

/** `C` is the message that configures it, `S` are its settings. */
export interface LoadBalancingPolicy<C = unknown, S = unknown> {
  /** For example `envoy.load_balancing_policies.random`. */
  readonly name: string;
  /** Requests of one hash go to one host; those without go to any. */
  readonly picksByHash?: boolean;
  /** The active requests of each host are counted, over all workers: its load balancers look at them. */
  readonly countsActiveRequests?: boolean;
  /** What the message says, with defaults filled in: plain data that JSON can carry to workers. Absent: it has no settings. */
  settings?(config: C): S;
  /** A number that runtime may change: load balancers are made anew when it does. */
  runtimeNumber?(settings: S): RuntimeNumber;
  /** A load balancer over hosts, of which there are some. Where that takes long it yields, about every millisecond. */
  createLoadBalancer(
    settings: S,
    hosts: HostList,
    context: BalancerContext,
  ): LoadBalancer | Generator<void, LoadBalancer>;
  /** What stats show of its load balancers. */
  readonly gauges?: BalancerGauges<S>;
}

export interface RuntimeNumber {
  /** '': runtime does not change it. */
  readonly runtimeKey: string;
  readonly value: number;
}

export interface BalancerContext {
  /** Shared words, which activeWords are indexes of. */
  readonly words: Int32Array;
  readonly random: Random;
  /** What runtimeNumber() is now; 0 without that. */
  readonly runtimeNumber: number;
}

/** Gauges of a policy. The primary works them out, from the hosts that load balancers are made of. */
export interface BalancerGauges<S = unknown> {
  /** Behind that of the cluster: `ring_hash_lb.` */
  readonly prefix: string;
  readonly layout: Layout;
  /** Sets them. There may be no hosts. */
  measure(settings: S, hosts: HostList, scope: Scope): void;
}

/** A cluster's policy with its settings, and what else there is to know of it before a load balancer is made; plain data. */
export interface LoadBalancerSpec extends Pick<LoadBalancingPolicy, 'picksByHash' | 'countsActiveRequests'> {
  /** Its name. */
  readonly policy: string;
  readonly settings: unknown;
}

/** The policies of this build. */
export interface LoadBalancingPolicies {
  /** Throws an Error when there is none of that name. */
  policyNamed(name: string): LoadBalancingPolicy;
  /** The one that a message of that type configures. */
  policyOf(typeUrl: string): LoadBalancingPolicy | undefined;
}

export function loadBalancerSpec<C extends Any, S>(policy: LoadBalancingPolicy<C, S>, config: C): LoadBalancerSpec {
  const { countsActiveRequests, name, picksByHash } = policy;
  return { policy: name, settings: policy.settings?.(config), picksByHash, countsActiveRequests };
}
