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

  constructor(context: RouteStatsContext) {
    this.#context = context;
  }

  /** Call before these routes are published, perhaps in place of earlier ones. */
  add(configs: Iterable<RouteConfiguration>): void {
    const requests = Array.from(configs, routeStatScopes).flat();
    if (requests.length === 0 && this.#held.length === 0) return;
    const held = this.#context.scopes.hold(requests);
    this.#held.push(held);
    if (requests.length > 0) this.#context.publish({ statScopes: held.refs });
  }

  /** Call when the latest routes are published: those of earlier ones are removed. */
  keepLatest(): void {
    if (this.#held.length > 1) this.#remove(this.#held.splice(0, this.#held.length - 1));
  }

  /** Call when workers have none of the routes. */
  close(): void {
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
