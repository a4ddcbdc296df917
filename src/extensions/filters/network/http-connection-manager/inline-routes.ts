// The routes that stand in a connection manager's own configuration, on one worker.

import { atOnce } from '../../../../common/next-turn.js';
import { readRegularFile } from '../../../../common/regular-file.js';
import type { RouteConfiguration } from '../../../../config/generated/api.js';
import type { RouteSource } from '../../../../http/manager-context.js';
import { buildRouteTableInSteps, type RouteTable } from '../../../../http/routing/route-table.js';
import type { RouteFilters, WorkerContext } from '../../../factories.js';

export class InlineRoutes implements RouteSource {
  current: RouteTable<unknown>;
  readonly #filters: RouteFilters;
  readonly #context: WorkerContext;

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

  #steps(config: RouteConfiguration): Generator<void, RouteTable<unknown>> {
    const { clusters, runtime } = this.#context;
    return buildRouteTableInSteps(config, (name) => clusters.reference(name), {
      findCluster: (name) => clusters.find(name),
      readFile: readRegularFile,
      filters: this.#filters.list,
      runtime,
    });
  }
}
