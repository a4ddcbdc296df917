// What a load report says about a cluster and its hosts: counts since the previous report, by priority and locality.

import { type Address, AddressKind, endpointIdOf, internalNameOf } from '../../io/addresses/address.js';
import { Kind } from '../../stats/layout.js';
import { ClusterStats, HostStats } from '../../stats/layouts/cluster.js';
import type { StatsStore } from '../../stats/store.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import type { KnownHost } from '../../upstream/hosts/host-directory.js';

/** Hosts counted in one step: about a millisecond's work. */
const BATCH = 500;

/** A cluster as its report shows it. */
export interface ReportedCluster {
  readonly spec: { readonly name: string };
  /** '' when not set. */
  readonly edsServiceName: string;
  /** With ClusterStats. */
  readonly scope: ScopeRef;
  readonly hosts: readonly KnownHost[];
  /** The category of requests that its assignment demands to drop; undefined: it demands none. */
  readonly drop: { readonly category: string } | undefined;
  /** Their number so far, modulo 2^32. */
  readonly droppedByPolicy: number;
}

/** The counters of a host: successful requests, failed ones, and all. Those of a cluster: requests dropped by its limits, and as its assignment demands. */
type Counters = readonly number[];

/** What reports have shown of a host or cluster. */
interface Known {
  /** Counters at the previous report that was sent. */
  readonly reported: Counters;
  /** Counters at the report with this number. */
  readonly last: Counters;
  readonly report: number;
}

export class HostLoads {
  readonly #store: StatsStore;
  /** By host, and by the scope of clusters. */
  readonly #known = new WeakMap<object, Known>();
  /** Number of the current report, and of the last one that was sent. */
  #report = 0;
  #sent = 0;

  constructor(store: StatsStore) {
    this.#store = store;
  }

  /** Begins to count a cluster: the next report does not include what it has counted before. Yields between batches of hosts. */
  *skip(cluster: ReportedCluster): Generator<void, void> {
    const { hosts, scope } = cluster;
    this.#reset(scope, this.#dropped(cluster));
    for (const [index, host] of hosts.entries()) {
      this.#reset(host, this.#requests(host));
      if (index % BATCH === BATCH - 1) yield;
    }
  }

  /** Begins a report. If the previous one was given up, this one includes its counts. */
  begin(): void {
    this.#report = this.#sent + 1;
  }

  /** Called when the report was sent. */
  sent(): void {
    this.#sent = this.#report;
  }

  /**
   * Returns the envoy.config.endpoint.v3.ClusterStats since the previous report that was sent, or since skip(), as plain data. Localities and
   * hosts without any requests are left out.
   */
  *report(cluster: ReportedCluster, showsEndpoints: boolean): Generator<void, object> {
    const localities = new Map<string, LocalityLoad>();
    for (const [index, host] of cluster.hosts.entries()) {
      const { locality, priority } = host.endpoint;
      const key = JSON.stringify([priority, locality.region, locality.zone, locality.subZone]);
      let load = localities.get(key);
      if (load === undefined) localities.set(key, (load = new LocalityLoad(host, showsEndpoints)));
      const counted = this.#take(host, this.#requests(host)).map((count) => Math.max(0, count));
      load.add(host, counted, this.#store.totalAt(host.scope, HostStats.at.rq_active, Kind.Gauge));
      if (index % BATCH === BATCH - 1) yield;
    }
    const upstream_locality_stats = [...localities.values()].flatMap((load) => load.stats ?? []);
    const [dropped = 0, policy = 0] = this.#take(cluster.scope, this.#dropped(cluster));
    const droppedByPolicy = policy >>> 0;
    return {
      cluster_name: cluster.spec.name,
      cluster_service_name: cluster.edsServiceName,
      upstream_locality_stats,
      total_dropped_requests: Math.max(0, dropped) + droppedByPolicy,
      dropped_requests:
        droppedByPolicy > 0 ? [{ category: cluster.drop?.category ?? '', dropped_count: droppedByPolicy }] : [],
    };
  }

  #requests({ scope }: KnownHost): Counters {
    const { rq_error, rq_success, rq_total } = HostStats.at;
    return [rq_success, rq_error, rq_total].map((at) => this.#store.totalAt(scope, at, Kind.Counter));
  }

  /** As in Envoy: the first number has requests that a circuit breaker or the maintenance mode has refused. */
  #dropped({ droppedByPolicy, scope }: ReportedCluster): Counters {
    const { upstream_rq_active_overflow, upstream_rq_maintenance_mode, upstream_rq_pending_overflow } = ClusterStats.at;
    let dropped = 0;
    for (const at of [upstream_rq_active_overflow, upstream_rq_maintenance_mode, upstream_rq_pending_overflow])
      dropped += this.#store.totalAt(scope, at, Kind.Counter);
    return [dropped, droppedByPolicy];
  }

  #reset(key: object, now: Counters): void {
    this.#known.set(key, { reported: now, last: now, report: this.#sent });
  }

  /** Returns what was counted since the previous report that was sent: less than 0 if a counter was reset, or has begun again at 0. */
  #take(key: object, now: Counters): Counters {
    const before = this.#known.get(key);
    const reported = before === undefined ? [] : before.report <= this.#sent ? before.last : before.reported;
    this.#known.set(key, { reported, last: now, report: this.#report });
    return now.map((count, index) => count - (reported[index] ?? 0));
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

  add({ endpoint }: KnownHost, [success = 0, error = 0, issued = 0]: Counters, active: number): void {
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
  if (kind === AddressKind.Internal)
    return { envoy_internal_address: { server_listener_name: internalNameOf(path), endpoint_id: endpointIdOf(path) } };
  return { socket_address: { address: ip, port_value: port } };
}
