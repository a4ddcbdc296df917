// The route configurations that scopes name: each is leased once, for as long as a scope names it.

import { messageOf } from '../../../common/errors/errors.js';
import type { ConfigSource } from '../../../config/generated/api.js';
import type { RouteFilters } from '../../../extensions/factories.js';
import type { ProviderUser } from '../providers/provider-users.js';
import type { RouteLease, RouteProviders } from '../providers/route-providers.js';

export interface ScopeLeasesHost {
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
  readonly #host: ScopeLeasesHost;
  readonly #leases = new Map<string, RouteLease>();
  /** Names of those that have not come. */
  readonly #awaited = new Set<string>();

  constructor(host: ScopeLeasesHost) {
    this.#host = host;
  }

  /** None is waited for. */
  get areReady(): boolean {
    return this.#awaited.size === 0;
  }

  /** Leases that one, unless it is leased already. Gives why that cannot be; '' when it is. */
  take(name: string): string {
    if (this.#leases.has(name)) return '';
    this.#awaited.add(name);
    const ready = () => {
      if (this.#awaited.delete(name)) this.#host.ready();
    };
    try {
      this.#leases.set(name, this.#use(name, { filters: () => this.#host.filters(), ready }));
      return '';
    } catch (error) {
      this.#awaited.delete(name);
      return messageOf(error);
    }
  }

  /** Of one that is leased, on the workers. */
  idOf(name: string): number {
    return this.#leases.get(name)!.id;
  }

  /** Throws BatonError CONFIG_INVALID when one of them cannot be used with the filters of `user`, whom nothing is told. */
  check(user: ProviderUser): void {
    const onlyAsked: ProviderUser = { filters: () => user.filters(), ready: () => {} };
    for (const name of this.#leases.keys()) this.#use(name, onlyAsked).close();
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
    for (const lease of this.#leases.values()) lease.close();
  }

  #use(name: string, user: ProviderUser): RouteLease {
    const { providers, source, statPrefix } = this.#host;
    return providers.use(source, name, statPrefix, user);
  }
}
