// What a load report says about the hosts of a cluster: counts since the previous report, by priority and locality.

import { type Address, AddressKind } from '../../io/addresses/address.js';
import { Kind } from '../../stats/layout.js';
import { HostStats } from '../../stats/layouts/cluster.js';
import type { StatsStore } from '../../stats/store.js';
import type { KnownHost } from '../../upstream/hosts/host-directory.js';

/** Hosts counted in one step: about a millisecond's work. */
const BATCH = 500;

/** A cluster as its report shows it. */
export interface ReportedCluster {
  readonly spec: { readonly name: string };
  /** '' when not set. */
  readonly edsServiceName: string;
  readonly hosts: readonly KnownHost[];
}

/** Counters of a host. */
interface Counts {
  success: number;
  error: number;
  issued: number;
}

export class HostLoads {
  readonly #store: StatsStore;
  /** Counters at the previous report. */
  readonly #reported = new WeakMap<KnownHost, Counts>();

  constructor(store: StatsStore) {
    this.#store = store;
  }

  /** Begins to count the hosts: the next report does not include what they have counted before. Yields between batches. */
  *skip(hosts: readonly KnownHost[]): Generator<void, void> {
    for (const [index, host] of hosts.entries()) {
      this.#take(host);
      if (index % BATCH === BATCH - 1) yield;
    }
  }

  /**
   * Returns the envoy.config.endpoint.v3.ClusterStats since the previous report, or since skip(), as plain data. Localities and
   * hosts without any requests are left out.
   */
  *report(cluster: ReportedCluster, showsEndpoints: boolean): Generator<void, object> {
    const localities = new Map<string, LocalityLoad>();
    for (const [index, host] of cluster.hosts.entries()) {
      const { locality, priority } = host.endpoint;
      const key = JSON.stringify([priority, locality.region, locality.zone, locality.subZone]);
      let load = localities.get(key);
      if (load === undefined) localities.set(key, (load = new LocalityLoad(host, showsEndpoints)));
      load.add(host, this.#take(host), this.#store.totalAt(host.scope, HostStats.at.rq_active, Kind.Gauge));
      if (index % BATCH === BATCH - 1) yield;
    }
    const upstream_locality_stats = [...localities.values()].flatMap((load) => load.stats ?? []);
    return {
      cluster_name: cluster.spec.name,
      cluster_service_name: cluster.edsServiceName,
      upstream_locality_stats,
    };
  }

  /** Returns what the host has counted since the previous call. */
  #take(host: KnownHost): Counts {
    const now: Counts = {
      success: this.#store.totalAt(host.scope, HostStats.at.rq_success, Kind.Counter),
      error: this.#store.totalAt(host.scope, HostStats.at.rq_error, Kind.Counter),
      issued: this.#store.totalAt(host.scope, HostStats.at.rq_total, Kind.Counter),
    };
    const before = this.#reported.get(host);
    this.#reported.set(host, now);
    if (before === undefined) return now;
    return {
      success: now.success - before.success,
      error: now.error - before.error,
      issued: now.issued - before.issued,
    };
  }
}

class LocalityLoad {
  readonly #first: KnownHost;
  readonly #endpoints: object[] | undefined;
  #success = 0;
  #error = 0;
  #issued = 0;
  #active = 0;

  constructor(first: KnownHost, showsEndpoints: boolean) {
    this.#first = first;
    this.#endpoints = showsEndpoints ? [] : undefined;
  }

  add({ endpoint }: KnownHost, { error, issued, success }: Counts, active: number): void {
    if (success + error + issued + active === 0) return;
    this.#success += success;
    this.#error += error;
    this.#issued += issued;
    this.#active += active;
    this.#endpoints?.push({ address: addressOf(endpoint.address), ...requests(success, error, issued, active) });
  }

  /** Undefined: it has nothing to report. */
  get stats(): object | undefined {
    if (this.#success + this.#error + this.#issued + this.#active === 0) return undefined;
    const { locality, priority } = this.#first.endpoint;
    return {
      locality: { region: locality.region, zone: locality.zone, sub_zone: locality.subZone },
      priority,
      ...requests(this.#success, this.#error, this.#issued, this.#active),
      upstream_endpoint_stats: this.#endpoints ?? [],
    };
  }
}

function requests(success: number, error: number, issued: number, active: number) {
  return {
    total_successful_requests: success,
    total_error_requests: error,
    total_issued_requests: issued,
    total_requests_in_progress: active,
  };
}

function addressOf({ ip, kind, path, port }: Address): object {
  if (kind === AddressKind.Unix) return { pipe: { path } };
  return { socket_address: { address: ip, port_value: port } };
}
