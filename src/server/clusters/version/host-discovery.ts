// The sources of a cluster version's hosts: its configuration, DNS, or EDS.

import { nextTurn } from '../../../common/time/next-turn.js';
import type { ClusterLoadAssignment } from '../../../config/generated/api.js';
import { ClusterStats } from '../../../stats/layouts/cluster.js';
import { assignmentPolicy } from '../../../upstream/assignment-policy.js';
import {
  type DiscoverySpec,
  type EndpointSpec,
  endpointSpecs,
  staticEndpoint,
} from '../../../upstream/discovery-config.js';
import { DnsCluster } from '../../../upstream/dns/dns-cluster.js';
import type { DnsResolver } from '../../../upstream/dns/resolver.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import type { HostPreparation } from '../../../upstream/hosts/host-preparation.js';
import type { TransportMatches } from '../../../upstream/hosts/transport-matches.js';
import type { DynamicState } from '../../../xds/dynamic-state.js';
import type { ClusterResources } from './cluster-resources.js';
import type { DiscoveryContext, DiscoveryListener, FoundHosts, HostDiscovery } from './discovery.js';
import { DnsCacheDiscovery } from './dns-cache-discovery.js';
import type { EndpointSubscription, EndpointSubscriptions, EndpointUser } from './endpoint-subscription.js';
import { OriginalDstDiscovery } from './original-dst-discovery.js';
import { RedisDiscovery } from './redis-discovery.js';

export function hostDiscovery(
  spec: DiscoverySpec,
  resources: ClusterResources,
  listener: DiscoveryListener,
  context: DiscoveryContext,
): HostDiscovery {
  if (spec.eds !== undefined)
    return new EdsDiscovery(spec.eds, spec.transports, resources, listener, context.subscriptions);
  if (spec.type === 'ORIGINAL_DST') return new OriginalDstDiscovery(spec, resources, listener, context);
  if (context.dnsCache !== undefined)
    return new DnsCacheDiscovery(spec, context.dnsCache, resources, listener, context);
  if (spec.type === 'REDIS') return new RedisDiscovery(spec, resources, listener, context);
  // An aggregate has no hosts of its own.
  return spec.type === 'STATIC' || spec.type === 'AGGREGATE'
    ? staticDiscovery(spec, listener)
    : new DnsDiscovery(spec, resources, listener, context);
}

function staticDiscovery({ endpoints, policy }: DiscoverySpec, listener: DiscoveryListener): HostDiscovery {
  return {
    start() {
      listener.onHosts({ endpoints: resolved(endpoints), policy });
      listener.onLooked();
    },
    stop() {},
  };
}

class DnsDiscovery implements HostDiscovery {
  readonly #spec: DiscoverySpec;
  readonly #listener: DiscoveryListener;
  readonly #dns: DnsCluster;
  /** Its own resolver; undefined: it uses the common one. */
  readonly #resolver: DnsResolver | undefined;

  constructor(
    spec: DiscoverySpec,
    { stats }: ClusterResources,
    listener: DiscoveryListener,
    context: DiscoveryContext,
  ) {
    const { random, timers } = context;
    const { resolver: settings } = spec.dns;
    this.#resolver = settings && context.resolver.withSettings(settings);
    const resolver = this.#resolver ?? context.resolver;
    this.#spec = spec;
    this.#listener = listener;
    this.#dns = new DnsCluster(spec, {
      ...{ timers, random },
      resolve: (name, family) => resolver.resolve(name, family),
      count: (stat) => stats.increment(ClusterStats.at[stat]),
      onHosts: (endpoints) => this.#report(endpoints),
      onInitialized: () => listener.onLooked(),
    });
  }

  start(): void {
    this.#dns.start();
    if (!this.#spec.waitsForHosts) this.#listener.onLooked();
  }

  inheritFrom(former: HostDiscovery): void {
    if (former instanceof DnsDiscovery) this.#report(this.#dns.inheritFrom(former.#dns));
  }

  stop(): void {
    this.#dns.stop();
    this.#resolver?.close();
  }

  #report(endpoints: readonly ResolvedEndpoint[]): void {
    this.#listener.onHosts({ endpoints, policy: this.#spec.policy });
  }
}

/** Longer assignments are prepared in steps, during which the previous hosts are used. */
const MANY_ENDPOINTS = 1000;

class EdsDiscovery implements HostDiscovery, EndpointUser {
  readonly #transports: TransportMatches;
  readonly #resources: ClusterResources;
  readonly #listener: DiscoveryListener;
  readonly #subscribe: () => EndpointSubscription;
  #subscription: EndpointSubscription | undefined;
  /** The preparation of the last long assignment. */
  #preparation: HostPreparation | undefined;

  constructor(
    { serviceName, source }: NonNullable<DiscoverySpec['eds']>,
    transports: TransportMatches,
    resources: ClusterResources,
    listener: DiscoveryListener,
    subscriptions: EndpointSubscriptions,
  ) {
    this.#transports = transports;
    this.#resources = resources;
    this.#listener = listener;
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
    const endpoints = resolved(endpointSpecs(assignment, this.#transports));
    const hosts = { endpoints, policy: assignmentPolicy(assignment) };
    this.#discardPreparation();
    if (endpoints.length > MANY_ENDPOINTS) void this.#prepare(hosts);
    else this.#use(hosts);
  }

  unassigned(): void {
    this.#listener.onLooked();
  }

  #use(hosts: FoundHosts): void {
    if (!this.#listener.onHosts(hosts)) this.#resources.stats.increment(ClusterStats.at.update_no_rebuild);
    this.#listener.onLooked();
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
      this.#listener.onUnusable(hosts.endpoints, error);
      this.#listener.onLooked();
    }
  }

  #discardPreparation(): void {
    if (this.#preparation === undefined) return;
    this.#resources.directory.discardPreparation(this.#preparation);
    this.#preparation = undefined;
  }
}

/** Returns the endpoints that need no resolution. */
function resolved(endpoints: readonly EndpointSpec[]): ResolvedEndpoint[] {
  return endpoints.flatMap((endpoint) => staticEndpoint(endpoint) ?? []);
}
