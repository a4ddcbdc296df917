// The route configurations that scopes name: each is leased once, for as long as a scope names it.

import type { ConfigSource } from '../../../config/generated/api.js';
import type { RouteFilters } from '../../../extensions/factories.js';
import type { ProviderUser } from '../providers/provider-users.js';
import type { RouteLease, RouteProviders } from '../providers/route-providers.js';

export interface ScopeLeasesContext {
  readonly providers: RouteProviders;
  /** Where the route configurations come from. */
  readonly source: ConfigSource;
  readonly statPrefix: string;
  /** Of all who use the scopes. */
  filters(): Iterable<RouteFilters>;
  /** One that was awaited has come, or will not come for now. */
  ready(): void;
}

export class ScopeLeases {
  readonly #context: ScopeLeasesContext;
  readonly #leases = new Map<string, RouteLease>();
  /** Names of those that have not come. */
  readonly #awaited = new Set<string>();

  constructor(context: ScopeLeasesContext) {
    this.#context = context;
  }

  /** None is waited for. */
  get areReady(): boolean {
    return this.#awaited.size === 0;
  }

  /** Its id on the workers, which know it until keep() leaves it out. Throws, with nothing leased, why it cannot be used. */
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

  /** What is wrong with what there is of each of them for a user with these filters; '' where nothing is. */
  problemsFor(user: Pick<ProviderUser, 'filters'>): string[] {
    return Array.from(this.#leases.values(), (lease) => lease.problemsFor(user.filters()));
  }

  /** Ends all but those with these ids. */
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
