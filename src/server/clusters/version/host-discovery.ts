// Where the hosts of one version of a cluster come from: its configuration, DNS, or EDS.

import type { Random } from '../../../common/random.js';
import { nextTurn } from '../../../common/time/next-turn.js';
import type { ClusterLoadAssignment } from '../../../config/generated/api.js';
import type { Timers } from '../../../io/time/timing-wheel.js';
import { ClusterStats } from '../../../stats/layouts/cluster.js';
import {
  type DiscoverySpec,
  type EndpointSpec,
  endpointSpecs,
  overprovisioningFactor,
  staticEndpoint,
} from '../../../upstream/cluster-config.js';
import { DnsCluster } from '../../../upstream/dns/dns-cluster.js';
import type { DnsResolver } from '../../../upstream/dns/resolver.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import type { HostPreparation } from '../../../upstream/hosts/host-preparation.js';
import type { DynamicState } from '../../../xds/dynamic-state.js';
import type { ClusterResources } from './cluster-resources.js';
import type { EndpointSubscription, EndpointSubscriptions, EndpointUser } from './endpoint-subscription.js';

export interface HostDiscovery {
  /** Begins to look for hosts. */
  start(): void;
  /** Its version takes the place of another one: it may go on with what `former` has found. */
  succeed?(former: HostDiscovery): void;
  stop(): void;
  /** What is known of its assignment, where endpoints come from EDS. */
  readonly assignment?: DynamicState | undefined;
}

/** The hosts as discovery knows them. */
export interface FoundHosts {
  /** In the order of the configuration. */
  readonly endpoints: readonly ResolvedEndpoint[];
  /** overprovisioning_factor of their assignment, in percent. */
  readonly overprovisioning: number;
}

/** Whoever wants to know them. */
export interface HostSeeker {
  /** Returns whether they are others than before. */
  found(hosts: FoundHosts): boolean;
  /** There is no room for these: the hosts before stay. */
  cannotUse(endpoints: readonly ResolvedEndpoint[], error: unknown): void;
  /** The first answer has come, with hosts or without, or none is waited for; perhaps not for the first time. */
  looked(): void;
}

export interface DiscoveryContext {
  readonly resolver: DnsResolver;
  readonly timers: Timers;
  readonly random: Random;
  readonly subscriptions: EndpointSubscriptions;
}

export function hostDiscovery(
  spec: DiscoverySpec,
  resources: ClusterResources,
  seeker: HostSeeker,
  context: DiscoveryContext,
): HostDiscovery {
  if (spec.eds !== undefined) return new EdsDiscovery(spec.eds, resources, seeker, context.subscriptions);
  return spec.type === 'STATIC' ? staticDiscovery(spec, seeker) : new DnsDiscovery(spec, resources, seeker, context);
}

function staticDiscovery({ endpoints, overprovisioning }: DiscoverySpec, seeker: HostSeeker): HostDiscovery {
  return {
    start() {
      seeker.found({ endpoints: resolved(endpoints), overprovisioning });
      seeker.looked();
    },
    stop() {},
  };
}

class DnsDiscovery implements HostDiscovery {
  readonly #spec: DiscoverySpec;
  readonly #seeker: HostSeeker;
  readonly #dns: DnsCluster;

  constructor(spec: DiscoverySpec, { stats }: ClusterResources, seeker: HostSeeker, context: DiscoveryContext) {
    const { random, resolver, timers } = context;
    this.#spec = spec;
    this.#seeker = seeker;
    this.#dns = new DnsCluster(spec, {
      ...{ timers, random },
      resolve: (name, family) => resolver.resolve(name, family),
      count: (stat) => stats.increment(ClusterStats.at[stat]),
      onHosts: (endpoints) => this.#found(endpoints),
      onInitialized: () => seeker.looked(),
    });
  }

  start(): void {
    this.#dns.start();
    if (!this.#spec.waitsForHosts) this.#seeker.looked();
  }

  inheritFrom(former: HostDiscovery): void {
    if (former instanceof DnsDiscovery) this.#found(this.#dns.inheritFrom(former.#dns));
  }

  stop(): void {
    this.#dns.stop();
  }

  #found(endpoints: readonly ResolvedEndpoint[]): void {
    this.#seeker.found({ endpoints, overprovisioning: this.#spec.overprovisioning });
  }
}

/** Longer assignments are prepared in steps: until then the hosts before them are used. */
const MANY_ENDPOINTS = 1000;

class EdsDiscovery implements HostDiscovery, EndpointUser {
  readonly #resources: ClusterResources;
  readonly #seeker: HostSeeker;
  readonly #subscribe: () => EndpointSubscription;
  #subscription: EndpointSubscription | undefined;
  /** Of the last assignment that was long. */
  #preparation: HostPreparation | undefined;

  constructor(
    { serviceName, source }: NonNullable<DiscoverySpec['eds']>,
    resources: ClusterResources,
    seeker: HostSeeker,
    subscriptions: EndpointSubscriptions,
  ) {
    this.#resources = resources;
    this.#seeker = seeker;
    this.#subscribe = () => subscriptions.to(source, serviceName, resources);
  }

  get assignment(): DynamicState | undefined {
    return this.#subscription?.state;
  }

  start(): void {
    this.#subscription = this.#subscribe();
    this.#subscription.add(this);
  }

  stop(): void {
    this.#discardPreparation();
    this.#subscription?.remove(this);
  }

  // ── EndpointUser ─────────────────────────────────────────────────────────────────────────────────────────────────

  assigned(assignment: ClusterLoadAssignment): void {
    const endpoints = resolved(endpointSpecs(assignment));
    const hosts = { endpoints, overprovisioning: overprovisioningFactor(assignment) };
    this.#discardPreparation();
    if (endpoints.length > MANY_ENDPOINTS) void this.#prepare(hosts);
    else this.#use(hosts);
  }

  unassigned(): void {
    this.#seeker.looked();
  }

  #use(hosts: FoundHosts): void {
    if (!this.#seeker.found(hosts)) this.#resources.stats.increment(ClusterStats.at.update_no_rebuild);
    this.#seeker.looked();
  }

  async #prepare(hosts: FoundHosts): Promise<void> {
    const preparation = this.#resources.directory.prepare();
    this.#preparation = preparation;
    try {
      for (const _ of preparation.steps(hosts.endpoints)) {
        await nextTurn();
        if (this.#preparation !== preparation) return;
      }
      this.#use(hosts);
    } catch (error) {
      this.#discardPreparation();
      this.#seeker.cannotUse(hosts.endpoints, error);
      this.#seeker.looked();
    }
  }

  #discardPreparation(): void {
    if (this.#preparation === undefined) return;
    this.#resources.directory.discardPreparation(this.#preparation);
    this.#preparation = undefined;
  }
}

/** Those that need no resolution. */
function resolved(endpoints: readonly EndpointSpec[]): ResolvedEndpoint[] {
  return endpoints.flatMap((endpoint) => staticEndpoint(endpoint) ?? []);
}
