// The route tables of one chain of filters on one worker, one after the other: virtual hosts that a table has in common with those
// before it are not built again.

import type { RouteConfiguration, VirtualHost } from '../../../config/generated/api.js';
import type { Runtime } from '../../../runtime/runtime.js';
import type { OnDemandHosts } from './on-demand-hosts.js';
import { type BuiltVirtualHost, buildRouteTableInSteps, type RouteFilter, type RouteTable } from './route-table.js';

/** What tables are built with. */
export interface TableThread<Cluster> {
  readonly clusters: {
    /** The cluster of a name that a route has; it need not exist yet. */
    reference(name: string): Cluster;
    /** The same of a name that a client may have made up: one that no route has leaves nothing behind. */
    find(name: string): Cluster | undefined;
  };
  readonly runtime: Runtime;
}

/** `Cluster` is what a route holds on to. */
export class RouteTableSeries<Cluster> {
  readonly #thread: TableThread<Cluster>;
  readonly #filters: readonly RouteFilter[];
  readonly #place: string;
  /** By the virtual host as configured. */
  readonly #built = new WeakMap<VirtualHost, BuiltVirtualHost<Cluster>>();

  /** `filters` are those of the chain, in its order; `place` is as RouteTableOptions has it. */
  constructor(thread: TableThread<Cluster>, filters: readonly RouteFilter[], place: string) {
    this.#thread = thread;
    this.#filters = filters;
    this.#place = place;
  }

  /**
   * Builds another table, a route at a time. A virtual host that is the same object as before is to stand in a configuration that is
   * the same but for its virtual hosts. `onDemandHosts` are asked for where the configuration has vhds. Throws as buildRouteTable().
   */
  next(config: RouteConfiguration, onDemandHosts?: OnDemandHosts): Generator<void, RouteTable<Cluster>> {
    const { clusters, runtime } = this.#thread;
    return buildRouteTableInSteps(config, (name) => clusters.reference(name), {
      findCluster: (name) => clusters.find(name),
      filters: this.#filters,
      place: this.#place,
      onDemandHosts: config.vhds === undefined ? undefined : onDemandHosts,
      runtime,
      built: this.#built,
    });
  }
}
