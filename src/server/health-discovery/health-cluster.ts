// A cluster of the health discovery service: its hosts are only checked, and get no traffic.

import { isDeepStrictEqual } from 'node:util';
import type { Cluster } from '../../config/generated/api.js';
import { addressText } from '../../io/addresses/address.js';
import type { Layout, LayoutDefinition } from '../../stats/layout.js';
import { HealthCheckStats, InternalUpstreamStats, TransportMatchStats } from '../../stats/layouts/cluster.js';
import { TlsFactoryStats, TlsStats } from '../../stats/layouts/tls.js';
import { scopePrefix } from '../../stats/scope-prefix.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';
import type { TlsContexts } from '../../tls/tls-contexts.js';
import { clusterSpec } from '../../upstream/cluster-config.js';
import { discoverySpec, staticEndpoint } from '../../upstream/discovery-config.js';
import { checkAddress } from '../../upstream/health-checks/check-target.js';
import { type HealthCheckSpec, healthCheckSpec } from '../../upstream/health-checks/health-check-spec.js';
import { HealthFlag } from '../../upstream/hosts/health-flags.js';
import { keyOf, type ResolvedEndpoint } from '../../upstream/hosts/host.js';
import type { Locality } from '../../upstream/hosts/locality.js';
import type { LoadBalancingPolicies } from '../../upstream/load-balancer/policy.js';
import type { EventFiles } from '../clusters/event-files.js';
import type { CheckThread } from '../clusters/health-checks/check-thread.js';
import { ClusterHealthChecks } from '../clusters/health-checks/cluster-health-checks.js';
import { HealthEventLog } from '../clusters/health-checks/health-event-log.js';
import { clusterTransports } from '../clusters/version/version-tls.js';
import { InitManager } from '../init/init-manager.js';

export interface HealthClusterContext {
  readonly store: StatsStore;
  readonly tls: TlsContexts;
  readonly policies: LoadBalancingPolicies;
  readonly checks: CheckThread;
  readonly eventFiles: EventFiles;
}

/** What checks have shown of a host. */
export interface HostState {
  /** HealthFlag bits. */
  readonly flags: number;
  /** Status of the last response to an HTTP check; 0: none. */
  readonly status: number;
}

const DISABLED: HostState = { flags: 0, status: 0 };
const UNCHECKED: HostState = { flags: HealthFlag.FailedActiveHealthCheck, status: 0 };

/** A locality in the API's JSON form, and its endpoints. */
export type LocalityHosts = readonly [locality: object, endpoints: readonly ResolvedEndpoint[]];

export class HealthCluster {
  readonly #resources: Resources;
  readonly #secrets: InitManager;
  readonly #checks: ClusterHealthChecks | undefined;
  #config: Cluster;
  #endpoints: readonly ResolvedEndpoint[];
  #localities: readonly LocalityHosts[];
  #states: Map<string, HostState>;
  #isClosed = false;

  /**
   * Starts the checks. `config` is checked. Hosts that `former` has keep its results until they are checked. Throws, with nothing left
   * behind, when the cluster cannot be used.
   */
  constructor(config: Cluster, former: HealthCluster | undefined, context: HealthClusterContext) {
    const name = config.name ?? '';
    this.#config = config;
    this.#endpoints = resolvedEndpoints(config);
    this.#localities = byLocality(this.#endpoints);
    this.#states = former === undefined ? new Map() : former.#statesOf(this.#endpoints);
    this.#secrets = new InitManager(`HDS cluster ${name}`);
    this.#resources = new Resources(context.store, name);
    try {
      const spec = healthCheckSpec({ ...config, ignore_health_on_host_removal: true });
      this.#checks = spec && this.#createChecks(config, spec, context);
    } catch (error) {
      this.#resources.release();
      throw error;
    }
    this.#startChecks();
  }

  get config(): Cluster {
    return this.#config;
  }

  /** In the order of the specifier. */
  get localities(): readonly LocalityHosts[] {
    return this.#localities;
  }

  /** Returns whether another configuration differs at most in its endpoints. */
  hasSameChecks(config: Cluster): boolean {
    const [one, other] = [this.#config, config].map((each) => ({ ...each, load_assignment: undefined }));
    return config === this.#config || isDeepStrictEqual(one, other);
  }

  /**
   * Returns what replaces the endpoints by those of a configuration with the same checks. The checks of remaining hosts go on. Throws when
   * the endpoints cannot be used.
   */
  prepareHosts(config: Cluster): () => void {
    const endpoints = resolvedEndpoints(config);
    return () => {
      if (this.#isClosed) return;
      this.#config = config;
      this.#endpoints = endpoints;
      this.#localities = byLocality(endpoints);
      this.#states = this.#statesOf(endpoints);
      this.#startChecks();
    };
  }

  /** Returns the results of a host. As in Envoy, one without results is unhealthy, unless its own settings disable checks. */
  stateOf(endpoint: ResolvedEndpoint): HostState {
    if (endpoint.check?.isDisabled) return DISABLED;
    return this.#states.get(keyOf(endpoint)) ?? UNCHECKED;
  }

  /** Further calls are no-ops. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#checks?.stop();
    this.#resources.release();
  }

  /** Sets the hosts to check, once the secrets of their transport sockets are known. */
  #startChecks(): void {
    this.#secrets.wait(() => {
      if (!this.#isClosed) this.#checks?.setHosts(this.#endpoints);
    });
  }

  #statesOf(endpoints: readonly ResolvedEndpoint[]): Map<string, HostState> {
    const states = new Map<string, HostState>();
    for (const endpoint of endpoints) {
      const key = keyOf(endpoint);
      const state = this.#states.get(key);
      if (state !== undefined) states.set(key, state);
    }
    return states;
  }

  #createChecks(config: Cluster, spec: HealthCheckSpec, context: HealthClusterContext): ClusterHealthChecks {
    const { checks: thread, eventFiles, policies, tls } = context;
    const name = config.name ?? '';
    const transports = clusterTransports(config, this.#resources, tls, this.#secrets);
    const log = HealthEventLog.of(spec, name, eventFiles);
    if (log !== undefined) this.#resources.whenUnused(() => log.release());
    const matches = (config.transport_socket_matches ?? []).map((match) =>
      this.#resources.addScope(`${match.name}.`, TransportMatchStats),
    );
    const checks = new ClusterHealthChecks(
      spec,
      {
        spec: clusterSpec(config, policies, transports),
        stats: this.#resources.addScope('health_check.', HealthCheckStats),
        hasTraffic: () => false,
        observe: () => {},
        transportMatched: (transport) => matches[transport - 1]?.increment(TransportMatchStats.at.total_match_count),
        hostPassed: () => {},
        hostFailed: () => {},
        events: {
          write: (host, result) => {
            this.#states.set(keyOf(host), { flags: result.after, status: result.status });
            log?.write(host, result);
          },
        },
      },
      thread,
    );
    checks.startCounting();
    return checks;
  }
}

function resolvedEndpoints(config: Cluster): ResolvedEndpoint[] {
  return discoverySpec(config).endpoints.map((endpoint) => {
    const resolved = staticEndpoint(endpoint);
    if (resolved === undefined) throw new Error(`'${endpoint.host}' is not an IP address`);
    // Hosts that are checked elsewhere differ by that too.
    if (resolved.check === undefined) return resolved;
    const checked = `${addressText(checkAddress(resolved))} ${resolved.check.hostname}`;
    return { ...resolved, key: `${addressText(resolved.address)} ${checked}` };
  });
}

function byLocality(endpoints: readonly ResolvedEndpoint[]): LocalityHosts[] {
  const groups = new Map<string, readonly [object, ResolvedEndpoint[]]>();
  for (const endpoint of endpoints) {
    const locality = localityOf(endpoint.locality);
    const key = JSON.stringify(locality);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [locality, [endpoint]]);
    else group[1].push(endpoint);
  }
  return [...groups.values()];
}

function localityOf({ region, subZone, zone }: Locality): object {
  return { region, zone, sub_zone: subZone };
}

/** The stats of one cluster, and what else is released with it. */
class Resources {
  readonly shared = { tlsScopes: () => this.#tlsScopes(), internalScope: () => this.#internalScope() };
  readonly #store: StatsStore;
  readonly #prefix: string;
  readonly #scopes: ScopeRef[] = [];
  readonly #unused: (() => void)[] = [];
  #internal: ScopeRef | undefined;
  #tls: { readonly ssl: ScopeRef; readonly factory: ScopeRef } | undefined;

  constructor(store: StatsStore, name: string) {
    this.#store = store;
    this.#prefix = scopePrefix(`cluster.${name}.`);
  }

  addScope(part: string, layout: Layout<LayoutDefinition>): Scope {
    return this.#store.scope(this.#add(part, layout));
  }

  statsOf(ref: ScopeRef): Scope {
    return this.#store.scope(ref);
  }

  whenUnused(free: () => void): void {
    this.#unused.push(free);
  }

  release(): void {
    for (const free of this.#unused) free();
    for (const ref of this.#scopes) this.#store.removeScope(ref);
  }

  #internalScope(): ScopeRef {
    this.#internal ??= this.#add('internal_upstream.', InternalUpstreamStats);
    return this.#internal;
  }

  #tlsScopes() {
    this.#tls ??= {
      ssl: this.#add('ssl.', TlsStats),
      factory: this.#add('client_ssl_socket_factory.', TlsFactoryStats),
    };
    return this.#tls;
  }

  #add(part: string, layout: Layout<LayoutDefinition>): ScopeRef {
    const ref = this.#store.addScope(`${this.#prefix}${part}`, layout);
    this.#scopes.push(ref);
    return ref;
  }
}
