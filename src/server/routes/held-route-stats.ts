// The stats of one route configuration, or of several with one owner. Workers receive their scopes before the routes that count in
// them, and lose them after these routes.

import type { RouteConfiguration } from '../../config/generated/api.js';
import { routeStatScopes } from '../../http/routing/stats/stat-prefixes.js';
import type { HeldScopes } from '../workers/worker-scopes.js';
import type { RoutesContext } from './routes-context.js';

export type RouteStatsContext = Pick<RoutesContext, 'publish' | 'scopes' | 'whenApplied'>;

export class HeldRouteStats {
  readonly #context: RouteStatsContext;
  /** The last one is that of the latest configurations. */
  #held: HeldScopes[] = [];
  /** Those of configurations that are checked, and may not be used. */
  #prepared: HeldScopes | undefined;

  constructor(context: RouteStatsContext) {
    this.#context = context;
  }

  /** Call before these routes are published, perhaps in place of earlier ones. */
  add(configs: Iterable<RouteConfiguration>): void {
    const held = this.#hold(configs);
    if (held !== undefined) this.#held.push(held);
  }

  /** Like add(), for routes that may not be published. Call the returned function if they are; otherwise the next prepare() removes them. */
  prepare(configs: Iterable<RouteConfiguration>): () => void {
    this.#removePrepared();
    const prepared = this.#hold(configs);
    this.#prepared = prepared;
    return () => {
      if (prepared === undefined || this.#prepared !== prepared) return;
      this.#prepared = undefined;
      this.#held.push(prepared);
    };
  }

  /** Returns undefined without stats, now and before. */
  #hold(configs: Iterable<RouteConfiguration>): HeldScopes | undefined {
    const requests = Array.from(configs, routeStatScopes).flat();
    if (requests.length === 0 && this.#held.length === 0) return undefined;
    const held = this.#context.scopes.hold(requests);
    if (requests.length > 0) this.#context.publish({ statScopes: held.refs });
    return held;
  }

  #removePrepared(): void {
    const prepared = this.#prepared;
    this.#prepared = undefined;
    if (prepared !== undefined) this.#remove([prepared]);
  }

  /** Call when the latest routes are published: those of earlier ones are removed. */
  keepLatest(): void {
    if (this.#held.length > 1) this.#remove(this.#held.splice(0, this.#held.length - 1));
  }

  /** Call when workers have none of the routes. */
  close(): void {
    this.#removePrepared();
    if (this.#held.length > 0) this.#remove(this.#held.splice(0));
  }

  /** Requests that began with the former routes count nothing from then on. */
  #remove(held: readonly HeldScopes[]): void {
    const removedStatScopes = held.flatMap((scopes) => scopes.retire());
    if (removedStatScopes.length > 0) this.#context.publish({ removedStatScopes });
    this.#context.whenApplied(() => {
      for (const scopes of held) scopes.free();
    });
  }
}
