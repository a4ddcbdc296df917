// The dynamic route configurations of one worker. A table is built once per configuration and set of filters; new requests use it
// from then on.

import { messageOf } from '../../common/errors/errors.js';
import { shownName } from '../../common/text/shown.js';
import { inBatches, runSync } from '../../common/time/next-turn.js';
import type { Rds, ScopedRoutes } from '../../config/generated/api.js';
import type { RouteFilters, WorkerPort, WorkerRoutes } from '../../extensions/factories.js';
import type { RouteSource, ScopedRouteSource } from '../../http/manager-context.js';
import type { OnDemandHosts } from '../../http/routing/tables/on-demand-hosts.js';
import { keyOfRds, keyOfScopedRoutes } from '../../http/routing/tables/route-keys.js';
import type { RouteTable } from '../../http/routing/tables/route-table.js';
import { RouteTableSeries, type TableThread } from '../../http/routing/tables/route-table-series.js';
import { getLogger } from '../../log/logger.js';
import type { ClusterReference } from '../../upstream/cluster-manager.js';
import type { RouteSnapshot, Snapshot } from '../messages/messages.js';
import { BATCH, isLong, type PackedRoutes, type UnpackedRoutes, unpackRoutes } from '../messages/packed-routes.js';
import { AwaitedHosts } from './awaited-hosts.js';
import { RouteScopes } from './route-scopes.js';

const logger = getLogger('router');

export class RouteTables implements WorkerRoutes {
  readonly #thread: TableThread<ClusterReference>;
  readonly #awaited: AwaitedHosts;
  readonly #byId = new Map<number, LiveRoutes>();
  readonly #byKey = new Map<string, LiveRoutes>();
  readonly #scopes = new Map<string, RouteScopes>();

  /** `port` is that of ON_DEMAND_PORT. */
  constructor(thread: TableThread<ClusterReference>, port: WorkerPort) {
    this.#thread = thread;
    this.#awaited = new AwaitedHosts(port);
  }

  /** Builds the long tables of a snapshot for apply(), in steps between which requests are served. */
  *prepare({ routes }: Pick<Snapshot, 'routes'>): Generator<void, void> {
    for (const { config, id } of routes) {
      if (config !== undefined && isLong(config)) yield* this.#byId.get(id)?.prepare(config) ?? [];
    }
  }

  apply({ routes, routeScopes }: Pick<Snapshot, 'routes' | 'routeScopes'>): void {
    for (const snapshot of routes) this.#applyRoutes(snapshot);
    const sourceOf = (id: number, filters: RouteFilters) => this.#byId.get(id)?.source(filters);
    for (const { key, scopes } of routeScopes) this.#scopesOf(key).update(scopes, sourceOf);
  }

  /** Removes routes and scopes. Connection managers that still have them keep the last version. */
  remove({ removedRoutes, removedRouteScopes }: Pick<Snapshot, 'removedRoutes' | 'removedRouteScopes'>): void {
    for (const id of removedRoutes) {
      const routes = this.#byId.get(id);
      this.#byId.delete(id);
      for (const [key, known] of this.#byKey) if (known === routes) this.#byKey.delete(key);
    }
    for (const key of removedRouteScopes) this.#scopes.delete(key);
  }

  rds(rds: Rds, filters: RouteFilters): RouteSource {
    const key = keyOfRds(rds);
    const routes = this.#byKey.get(key);
    if (routes === undefined) throw new Error(`the primary has not published the routes ${key}`);
    return routes.source(filters);
  }

  scoped(scoped: ScopedRoutes, filters: RouteFilters): ScopedRouteSource {
    return this.#scopesOf(keyOfScopedRoutes(scoped)).source(scoped, filters);
  }

  #applyRoutes({ id, key, config }: RouteSnapshot): void {
    let routes = this.#byId.get(id);
    if (routes === undefined) {
      routes = new LiveRoutes(this.#thread, this.#awaited.of(id), `routes ${id}`);
      this.#byId.set(id, routes);
      if (key !== '') this.#byKey.set(key, routes);
    }
    if (config !== undefined) routes.update(config);
  }

  #scopesOf(key: string): RouteScopes {
    let scopes = this.#scopes.get(key);
    if (scopes === undefined) this.#scopes.set(key, (scopes = new RouteScopes()));
    return scopes;
  }
}

/** One route configuration, and its tables. */
class LiveRoutes {
  readonly #thread: TableThread<ClusterReference>;
  readonly #onDemandHosts: OnDemandHosts;
  readonly #place: string;
  /** By the filters' signature; each lives as long as a connection manager has it. */
  readonly #sources = new Map<string, WeakRef<LiveSource>>();
  #current: UnpackedRoutes | undefined;
  /** The parts of the next version that are built already. */
  #prepared: Prepared | undefined;

  constructor(thread: TableThread<ClusterReference>, onDemandHosts: OnDemandHosts, place: string) {
    this.#thread = thread;
    this.#onDemandHosts = onDemandHosts;
    this.#place = place;
  }

  /** Returns the tables for these filters. Throws when the table cannot be built. */
  source(filters: RouteFilters): LiveSource {
    const existing = this.#sources.get(filters.signature)?.deref();
    if (existing !== undefined) return existing;
    const tables = new RouteTableSeries(this.#thread, filters.list, this.#place);
    const source = { tables, current: runSync(tables.next(this.#current?.config ?? {}, this.#onDemandHosts)) };
    this.#sources.set(filters.signature, new WeakRef(source));
    return source;
  }

  /** Unpacks and builds what update() needs. Failures are left to update(). */
  *prepare(packed: PackedRoutes): Generator<void, void> {
    const routes = yield* unpackRoutes(packed, this.#current);
    const tables = new Map<string, RouteTable<ClusterReference>>();
    for (const [signature, reference] of this.#sources) {
      const source = reference.deref();
      if (source === undefined) continue;
      try {
        tables.set(signature, yield* inBatches(source.tables.next(routes.config, this.#onDemandHosts), BATCH));
      } catch {
        break;
      }
    }
    this.#prepared = { routes, tables };
  }

  /** Sets the routes for new requests. */
  update(packed: PackedRoutes): void {
    const prepared = this.#prepared?.routes.packed === packed ? this.#prepared : undefined;
    this.#prepared = undefined;
    this.#current = prepared?.routes ?? runSync(unpackRoutes(packed, this.#current));
    const { config } = this.#current;
    for (const [signature, reference] of this.#sources) {
      const source = reference.deref();
      if (source === undefined) {
        this.#sources.delete(signature);
        continue;
      }
      try {
        source.current = prepared?.tables.get(signature) ?? runSync(source.tables.next(config, this.#onDemandHosts));
      } catch (error) {
        // The primary could build it: perhaps the file of a response has been removed since. The previous routes stay.
        logger.error(`route configuration '${shownName(config.name ?? '')}' cannot be used: ${messageOf(error)}`);
      }
    }
  }
}

interface Prepared {
  readonly routes: UnpackedRoutes;
  /** By the filters' signature. */
  readonly tables: ReadonlyMap<string, RouteTable<ClusterReference>>;
}

interface LiveSource extends RouteSource {
  current: RouteTable<unknown>;
  readonly tables: RouteTableSeries<ClusterReference>;
}
