// The routes that stand in a connection manager's own configuration, on one worker.

import { atOnce } from '../../../../common/next-turn.js';
import type { RouteConfiguration, VirtualHost } from '../../../../config/generated/api.js';
import type { RouteSource } from '../../../../http/manager-context.js';
import {
  type BuiltVirtualHost,
  buildRouteTableInSteps,
  type RouteTable,
} from '../../../../http/routing/route-table.js';
import type { ClusterReference } from '../../../../upstream/cluster-manager.js';
import type { RouteFilters, WorkerContext } from '../../../factories.js';

export class InlineRoutes implements RouteSource {
  current: RouteTable<unknown>;
  readonly #filters: RouteFilters;
  readonly #context: WorkerContext;
  /** By the virtual host as configured. */
  readonly #built = new WeakMap<VirtualHost, BuiltVirtualHost<ClusterReference>>();

  /** Without routes: prepare() brings them, which travel apart from the configuration. */
  constructor(filters: RouteFilters, context: WorkerContext) {
    this.#filters = filters;
    this.#context = context;
    this.current = atOnce(this.#steps({}));
  }

  /** Throws when the table cannot be built. */
  *prepare(config: RouteConfiguration): Generator<void, () => void> {
    const table = yield* this.#steps(config);
    return () => {
      this.current = table;
    };
  }

  #steps(config: RouteConfiguration): Generator<void, RouteTable<ClusterReference>> {
    const { clusters, runtime } = this.#context;
    return buildRouteTableInSteps(config, (name) => clusters.reference(name), {
      findCluster: (name) => clusters.find(name),
      filters: this.#filters.list,
      runtime,
      built: this.#built,
    });
  }
}
