// The route of one request, and whether it may upgrade there.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { ConnectionSecurity } from '../../io/tls/connection-security.js';
import { HttpStats } from '../../stats/layouts/http.js';
import type { ClusterReferenceLike } from '../filters/filter.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { ManagerContext } from '../manager-context.js';
import { type Route, RouteKind } from '../routing/actions/route.js';
import type { MissingHost } from '../routing/tables/on-demand-hosts.js';
import type { RouteTable } from '../routing/tables/route-table.js';
import { allowsUpgrade } from './upgrade.js';

export class StreamRouting {
  /** Undefined if no route matches. */
  route: Route<unknown> | undefined;
  /** The request is an upgrade that its route allows. Counted as an active upgrade until end(). */
  isUpgrade = false;
  readonly #manager: ManagerContext;

  constructor(manager: ManagerContext) {
    this.#manager = manager;
  }

  /** Starts a request. */
  begin(): void {
    this.route = undefined;
    this.isUpgrade = false;
  }

  /** Returns the route table for new requests. */
  tableFor(headers: HeaderBlock): RouteTable<unknown> {
    const { scopes, routes } = this.#manager.options;
    return scopes === undefined ? routes.current : scopes.tableFor(headers);
  }

  /** Finds the route in `table`. `security`: of the client's connection; undefined without TLS. */
  find(
    table: RouteTable<unknown>,
    headers: HeaderBlock,
    security: ConnectionSecurity | undefined,
    info: StreamInfo,
  ): void {
    this.route = table.match(headers, this.#manager.thread.random.nextUint32(), security, info);
  }

  /** Returns the route that `headers` would have. */
  match(headers: HeaderBlock, security: ConnectionSecurity | undefined): Route<unknown> | undefined {
    return this.tableFor(headers).match(headers, this.#manager.thread.random.nextUint32(), security);
  }

  /** Replaces the cluster of a route that forwards to one. Returns whether there is such a route. */
  setCluster(cluster: ClusterReferenceLike): boolean {
    if (this.route === undefined || this.route.kind !== RouteKind.Forward) return false;
    this.route = this.route.to(cluster, cluster.name);
    return true;
  }

  /** Returns the virtual host that can be requested from the management server, if the request has no route for lack of it. */
  missingHost(headers: HeaderBlock): MissingHost | undefined {
    return this.route === undefined ? this.tableFor(headers).missingHost(headers) : undefined;
  }

  /** Returns whether a request that asks for an upgrade may continue. One without a route may, since it may still get one. */
  acceptUpgrade(headers: HeaderBlock): boolean {
    const { options, stats } = this.#manager;
    if (allowsUpgrade(headers, this.route, options.upgrades)) {
      if (this.isUpgrade) return true;
      this.isUpgrade = true;
      stats.http.increment(HttpStats.at.downstream_cx_upgrades_total);
      stats.http.increment(HttpStats.at.downstream_cx_upgrades_active);
      return true;
    }
    // An upgrade that was accepted before a filter had the route found again needs a route that allows it.
    if (this.route === undefined && !this.isUpgrade) return true;
    stats.http.increment(HttpStats.at.downstream_rq_ws_on_non_ws_route);
    return false;
  }

  /** Ends the request. */
  end(): void {
    if (this.isUpgrade) this.#manager.stats.http.decrement(HttpStats.at.downstream_cx_upgrades_active);
  }
}
