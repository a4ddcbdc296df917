// The routes that stand in a connection manager's own configuration, on one worker.

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

  /** Without routes: prepare() brings them, which travel apart from the configuration. */
  constructor(filters: RouteFilters, context: WorkerContext, place: string) {
    this.#tables = new RouteTableSeries(context, filters.list, place);
    this.current = runSync(this.#tables.next({}));
  }

  /** Throws when the table cannot be built. */
  *prepare(config: RouteConfiguration): Generator<void, () => void> {
    const table = yield* this.#tables.next(config);
    return () => {
      this.current = table;
    };
  }
}
