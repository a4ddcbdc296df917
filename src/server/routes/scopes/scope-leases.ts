// The route configurations that scopes name. Each is leased once, while a scope names it.

import type { ConfigSource } from '../../../config/generated/api.js';
import type { RouteFilters } from '../../../extensions/factories.js';
import type { ProviderUser } from '../providers/provider-users.js';
import type { RouteLease, RouteProviders } from '../providers/route-providers.js';

export interface ScopeLeasesContext {
  readonly providers: RouteProviders;
  /** Source of the route configurations. */
  readonly source: ConfigSource;
  readonly statPrefix: string;
  /** Returns the filters of all users of the scopes. */
  filters(): Iterable<RouteFilters>;
  /** Called when an awaited route configuration has arrived, or is not awaited any longer. */
  ready(): void;
}

export class ScopeLeases {
  readonly #context: ScopeLeasesContext;
  readonly #leases = new Map<string, RouteLease>();
  /** Names of those that have not arrived. */
  readonly #awaited = new Set<string>();

  constructor(context: ScopeLeasesContext) {
    this.#context = context;
  }

  /** None is awaited. */
  get areReady(): boolean {
    return this.#awaited.size === 0;
  }

  /**
   * Leases a route configuration until keep() omits it. Returns its id on workers. Throws, with nothing leased, when it is
   * unusable.
   */
  take(name: string): number {
    const known = this.#leases.get(name);
    if (known !== undefined) return known.id;
    const context = this.#context;
    this.#awaited.add(name);
    const ready = () => {
      if (this.#awaited.delete(name)) context.ready();
    };
    try {
      const user = { filters: () => context.filters(), ready };
      const lease = context.providers.use(context.source, name, context.statPrefix, user);
      this.#leases.set(name, lease);
      return lease.id;
    } catch (error) {
      this.#awaited.delete(name);
      throw error;
    }
  }

  /** Returns the problems of each one for a user with these filters; '' for those without. */
  problemsFor(user: Pick<ProviderUser, 'filters'>): string[] {
    return Array.from(this.#leases.values(), (lease) => lease.problemsFor(user.filters()));
  }

  /** Ends all leases except those with these ids. */
  keep(ids: ReadonlySet<number>): void {
    for (const [name, lease] of this.#leases) {
      if (ids.has(lease.id)) continue;
      this.#leases.delete(name);
      this.#awaited.delete(name);
      lease.close();
    }
  }

  close(): void {
    this.keep(new Set());
  }
}
