// The interface of load-balancing policies, which are extensions, to clusters and threads.

import type { Random } from '../../common/random.js';
import type { Any, LoadBalancingPolicy as PolicyList } from '../../config/generated/api.js';
import type { Clock } from '../../io/time/clock.js';
import type { Runtime } from '../../runtime/runtime.js';
import type { Layout } from '../../stats/layout.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { OverrideSpec } from '../hosts/host-overrides.js';
import type { HostList, LoadBalancer } from './load-balancer.js';
import type { SubsetSpec } from './subsets/subset-spec.js';
import type { ZoneSettings } from './zone-routes.js';

/** `C` is the message that configures it, `S` its settings. */
export interface LoadBalancingPolicy<C = unknown, S = unknown> {
  /** For example `envoy.load_balancing_policies.random`. */
  readonly name: string;
  /** Requests with the same hash go to the same host; those without go to any. */
  readonly picksByHash?: boolean;
  /** A pick may be made before its request comes, because nothing that happens meanwhile could change it. */
  readonly isPredictable?: boolean;
  /** Its load balancers use active request counts, which are then summed over all workers. */
  readonly countsActiveRequests?: boolean;
  /**
   * Converts the message to settings, with defaults filled in: plain data that is sent to workers as JSON. Absent: no settings.
   */
  settings?(config: C): S;
  /** Returns whether its load balancers use HostList.healthySinceMs. */
  needsHealthTimes?(settings: S): boolean;
  /** Returns how it distributes requests over localities; undefined: without regard to weights of localities, DEFAULT_ZONES. */
  localities?(config: C): LocalityBalancing | undefined;
  /** Its load balancers may be one for each locality. */
  readonly isZoneAware?: boolean;
  /** Returns a number that runtime may override: load balancers are rebuilt when it changes. */
  runtimeNumber?(settings: S): RuntimeNumber;
  /**
   * Creates a load balancer for a non-empty list of hosts. If that takes long, it is a generator that yields about every
   * millisecond.
   */
  createLoadBalancer(
    settings: S,
    hosts: HostList,
    context: BalancerContext,
  ): LoadBalancer | Generator<void, LoadBalancer>;
  /** Gauges of its load balancers. */
  readonly gauges?: BalancerGauges<S>;
}

/** A policy that determines when, or among which hosts, another one picks. */
export interface WrappingPolicy<C = unknown> {
  readonly name: string;
  wrap(config: C): Wrapping;
}

/** The other policy, the first one of a list that this build has, and what happens before it picks. */
export interface Wrapping {
  readonly policies: PolicyList | undefined;
  /** The other policy picks in subsets of the hosts. */
  readonly subsets?: SubsetSpec;
  /** The other policy picks for requests that name no host. */
  readonly overrides?: OverrideSpec;
}

/** How requests are distributed over the localities of a priority; plain data. */
export interface LocalityBalancing {
  /** In proportion to the weights of localities. */
  readonly isWeighted: boolean;
  /** By zone where not by weight. */
  readonly zones: ZoneSettings;
  /** In panic, requests fail instead of going to unhealthy hosts. */
  readonly failTrafficOnPanic: boolean;
}

export interface RuntimeNumber {
  /** '': no override. */
  readonly runtimeKey: string;
  readonly value: number;
}

export interface BalancerContext {
  /** Shared words, indexed by activeWords. */
  readonly words: Int32Array;
  readonly random: Random;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly runtime: Runtime;
  /** Current value of runtimeNumber(); 0 without one. */
  readonly runtimeNumber: number;
}

/** Gauges of a policy. The primary computes them from the hosts of the load balancers. */
export interface BalancerGauges<S = unknown> {
  /** Suffix to the cluster's prefix: `ring_hash_lb.` */
  readonly prefix: string;
  readonly layout: Layout;
  /** Sets the gauges. The list may be empty. */
  measure(settings: S, hosts: HostList, scope: Scope): void;
}

/** A cluster's policy with its settings, and its properties that are needed before a load balancer exists; plain data. */
export interface LoadBalancerSpec
  extends Pick<LoadBalancingPolicy, 'picksByHash' | 'isPredictable' | 'countsActiveRequests'> {
  /** Name of the policy. */
  readonly policy: string;
  readonly settings: unknown;
  /** See LoadBalancingPolicy.needsHealthTimes(). */
  readonly needsHealthTimes?: boolean | undefined;
  /** Undefined: as for LoadBalancingPolicy.localities(). */
  readonly localities: LocalityBalancing | undefined;
  /** The policy picks in subsets of the hosts; undefined: among all hosts. */
  readonly subsets?: SubsetSpec | undefined;
  /** How requests name their hosts; undefined: they do not. */
  readonly overrides?: OverrideSpec | undefined;
}

/** The policies of this build. */
export interface LoadBalancingPolicies {
  /** Returns the policy of that name. Throws an Error when there is none. */
  policyNamed(name: string): LoadBalancingPolicy;
  /** Returns the policy that messages of that type configure. */
  policyOf(typeUrl: string): LoadBalancingPolicy | WrappingPolicy | undefined;
}

export function loadBalancerSpec<C extends Any, S>(policy: LoadBalancingPolicy<C, S>, config: C): LoadBalancerSpec {
  const { countsActiveRequests, isPredictable, name, picksByHash } = policy;
  const settings = policy.settings?.(config) as S;
  const localities = policy.localities?.(config);
  const needsHealthTimes = policy.needsHealthTimes?.(settings);
  return { policy: name, settings, localities, picksByHash, isPredictable, countsActiveRequests, needsHealthTimes };
}
