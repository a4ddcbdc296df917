// The routes that stand in a connection manager's own configuration, on one worker.

import { readRegularFile } from '../../../../common/regular-file.js';
import type { Any, HttpConnectionManager } from '../../../../config/generated/api.js';
import { unpacked } from '../../../../config/schema/any.js';
import type { RouteSource } from '../../../../http/manager-context.js';
import { buildRouteTable, type RouteTable } from '../../../../http/routing/route-table.js';
import type { RouteFilters, WorkerContext } from '../../../factories.js';

const MANAGER = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager' as const;

export class InlineRoutes implements RouteSource {
  current: RouteTable<unknown>;
  readonly #filters: RouteFilters;
  readonly #context: WorkerContext;

  /** Throws when the table cannot be built. */
  constructor(config: HttpConnectionManager, filters: RouteFilters, context: WorkerContext) {
    this.#filters = filters;
    this.#context = context;
    this.current = this.#build(config);
  }

  prepare(config: Any): () => void {
    const table = this.#build(unpacked(config, MANAGER));
    return () => {
      this.current = table;
    };
  }

  #build({ route_config }: HttpConnectionManager): RouteTable<unknown> {
    const { clusters, runtime } = this.#context;
    return buildRouteTable(route_config ?? {}, (name) => clusters.reference(name), {
      findCluster: (name) => clusters.find(name),
      readFile: readRegularFile,
      filters: this.#filters.list,
      runtime,
    });
  }
}
