// The route tables of one chain of filters on one worker, one after the other: virtual hosts that a table has in common with those
// before it are not built again.

import type { RouteConfiguration, VirtualHost } from '../../config/generated/api.js';
import type { Runtime } from '../../runtime/runtime.js';
import type { ClusterManager, ClusterReference } from '../../upstream/cluster-manager.js';
import type { OnDemandHosts } from './on-demand-hosts.js';
import { type BuiltVirtualHost, buildRouteTableInSteps, type RouteFilter, type RouteTable } from './route-table.js';

/** What tables are built with. */
export interface TableThread {
  readonly clusters: ClusterManager;
  readonly runtime: Runtime;
}

export class RouteTableSeries {
  readonly #thread: TableThread;
  readonly #filters: readonly RouteFilter[];
  /** By the virtual host as configured. */
  readonly #built = new WeakMap<VirtualHost, BuiltVirtualHost<ClusterReference>>();

  /** `filters` are those of the chain, in its order. */
  constructor(thread: TableThread, filters: readonly RouteFilter[]) {
    this.#thread = thread;
    this.#filters = filters;
  }

  /**
   * Builds another table, a route at a time. A virtual host that is the same object as before is to stand in a configuration that is
   * the same but for its virtual hosts. `onDemandHosts` are asked for where the configuration has vhds. Throws as buildRouteTable().
   */
  next(config: RouteConfiguration, onDemandHosts?: OnDemandHosts): Generator<void, RouteTable<ClusterReference>> {
    const { clusters, runtime } = this.#thread;
    return buildRouteTableInSteps(config, (name) => clusters.reference(name), {
      // A name that a client makes up is not registered.
      findCluster: (name) => clusters.find(name),
      filters: this.#filters,
      onDemandHosts: config.vhds === undefined ? undefined : onDemandHosts,
      runtime,
      built: this.#built,
    });
  }
}
