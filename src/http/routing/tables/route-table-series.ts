// Builds the successive route tables of one filter chain on one worker, and reuses unchanged virtual hosts.

import type { RouteConfiguration, VirtualHost } from '../../../config/generated/api.js';
import type { Runtime } from '../../../runtime/runtime.js';
import type { ClusterSpecifiers } from '../actions/cluster-specifier.js';
import type { RequestMatchers } from '../matching/request-matchers.js';
import type { RouteCounts } from '../stats/route-counts.js';
import type { OnDemandHosts } from './on-demand-hosts.js';
import { type BuiltVirtualHost, buildRouteTableInSteps, type RouteFilter, type RouteTable } from './route-table.js';

/** The parts of the thread that tables are built with. */
export interface TableThread<Cluster> {
  readonly clusters: {
    /** Returns a reference to the cluster that a route names, which may not exist yet. */
    reference(name: string): Cluster;
    /** Returns the cluster that a client names. Keeps nothing for unknown names. */
    find(name: string): Cluster | undefined;
  };
  readonly runtime: Runtime;
  /** The stats of virtual clusters and routes, by their prefix. */
  readonly routeCounts: { of(prefix: string): RouteCounts | undefined };
  /** Absent: no plugin runs. */
  readonly specifiers?: ClusterSpecifiers;
  /** Absent: matchers of virtual hosts select nothing. */
  readonly matchers?: RequestMatchers;
}

/** `Cluster` is the type that routes keep. */
export class RouteTableSeries<Cluster> {
  readonly #thread: TableThread<Cluster>;
  readonly #filters: readonly RouteFilter[];
  readonly #place: string;
  /** Keyed by the configured virtual host. */
  readonly #built = new WeakMap<VirtualHost, BuiltVirtualHost<Cluster>>();

  /** `filters` are those of the chain, in its order. `place` is described in RouteTableOptions. */
  constructor(thread: TableThread<Cluster>, filters: readonly RouteFilter[], place: string) {
    this.#thread = thread;
    this.#filters = filters;
    this.#place = place;
  }

  /**
   * Builds another table, one route per step. Virtual hosts that are the same object as before are reused, so the configuration may differ
   * from that of the previous table only in its virtual hosts if it shares any. `onDemandHosts` is used if the configuration has vhds.
   * Throws like buildRouteTable().
   */
  next(config: RouteConfiguration, onDemandHosts?: OnDemandHosts): Generator<void, RouteTable<Cluster>> {
    const { clusters, matchers, routeCounts, runtime, specifiers } = this.#thread;
    return buildRouteTableInSteps(config, (name) => clusters.reference(name), {
      findCluster: (name) => clusters.find(name),
      matchers,
      specifiers,
      filters: this.#filters,
      place: this.#place,
      onDemandHosts: config.vhds === undefined ? undefined : onDemandHosts,
      runtime,
      countsOf: (prefix) => routeCounts.of(prefix),
      built: this.#built,
    });
  }
}
