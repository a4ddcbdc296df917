// The inline routes of a connection manager on one worker.

import { runSync } from '../../../../common/time/next-turn.js';
import type { RouteConfiguration } from '../../../../config/generated/api.js';
import type { RouteSource } from '../../../../http/manager-context.js';
import type { RouteTable } from '../../../../http/routing/tables/route-table.js';
import { RouteTableSeries } from '../../../../http/routing/tables/route-table-series.js';
import type { ClusterReference } from '../../../../upstream/cluster-manager.js';
import type { RouteFilters, WorkerContext } from '../../../factories.js';

export class InlineRoutes implements RouteSource {
  current: RouteTable<unknown>;
  readonly #tables: RouteTableSeries<ClusterReference>;

  /** Starts without routes. They are sent apart from the configuration and set by prepare(). */
  constructor(filters: RouteFilters, context: WorkerContext, place: string) {
    this.#tables = new RouteTableSeries(context, filters.list, place);
    this.current = runSync(this.#tables.next({}));
  }

  /** Builds a table in steps and returns a function that activates it. Throws if it cannot be built. */
  *prepare(config: RouteConfiguration): Generator<void, () => void> {
    const table = yield* this.#tables.next(config);
    return () => {
      this.current = table;
    };
  }
}
