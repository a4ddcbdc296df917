// The scopes of connection managers on one worker (SRDS): a key built from a request's headers selects its route table.

import type { ScopedRoutes } from '../../config/generated/api.js';
import type { RouteFilters } from '../../extensions/factories.js';
import type { HeaderBlock } from '../../http/headers/header-block.js';
import type { RouteSource, ScopedRouteSource } from '../../http/manager-context.js';
import { buildRouteTable, type RouteTable } from '../../http/routing/tables/route-table.js';
import { ScopeKeyBuilder, scopeKey } from '../../http/routing/tables/scope-key.js';
import type { RouteScopeSnapshot } from '../messages/messages.js';

/** Returns the routes with this id for a chain with these filters; undefined: there are none. */
export type SourceOf = (id: number, filters: RouteFilters) => RouteSource | undefined;

/** The scopes of one scoped_routes. */
export class RouteScopes {
  /** By the filters' signature; each lives as long as a connection manager has it. */
  readonly #sources = new Map<string, WeakRef<LiveScopes>>();
  #scopes: readonly RouteScopeSnapshot[] = [];
  #sourceOf: SourceOf = () => undefined;

  /** Replaces the scopes for new requests. */
  update(scopes: readonly RouteScopeSnapshot[], sourceOf: SourceOf): void {
    this.#scopes = scopes;
    this.#sourceOf = sourceOf;
    for (const [signature, reference] of this.#sources) {
      const source = reference.deref();
      if (source === undefined) this.#sources.delete(signature);
      else source.tables = this.#tablesFor(source.filters);
    }
  }

  source({ scope_key_builder: builder }: ScopedRoutes, filters: RouteFilters): ScopedRouteSource {
    const existing = this.#sources.get(filters.signature)?.deref();
    if (existing !== undefined) return existing;
    const source = new LiveScopes(new ScopeKeyBuilder(builder!), filters, this.#tablesFor(filters));
    this.#sources.set(filters.signature, new WeakRef(source));
    return source;
  }

  #tablesFor(filters: RouteFilters): Map<string, RouteSource> {
    const tables = new Map<string, RouteSource>();
    for (const { fragments, routes } of this.#scopes) {
      const source = this.#sourceOf(routes, filters);
      if (source !== undefined) tables.set(scopeKey(fragments), source);
    }
    return tables;
  }
}

const NO_ROUTES: RouteTable<unknown> = buildRouteTable({}, () => undefined);

class LiveScopes implements ScopedRouteSource {
  readonly filters: RouteFilters;
  /** By scopeKey(). */
  tables: ReadonlyMap<string, RouteSource>;
  readonly #builder: ScopeKeyBuilder;

  constructor(builder: ScopeKeyBuilder, filters: RouteFilters, tables: ReadonlyMap<string, RouteSource>) {
    this.#builder = builder;
    this.filters = filters;
    this.tables = tables;
  }

  tableFor(headers: HeaderBlock): RouteTable<unknown> {
    const key = this.#builder.keyOf(headers);
    return (key === undefined ? undefined : this.tables.get(key))?.current ?? NO_ROUTES;
  }
}
