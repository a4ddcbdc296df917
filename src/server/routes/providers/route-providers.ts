// The route configurations that sources deliver: one provider for each, while it has users.

import { BatonError } from '../../../common/errors/errors.js';
import type { ConfigSource } from '../../../config/generated/api.js';
import type { PrimaryPart, RouteFilters } from '../../../extensions/factories.js';
import { rdsKey } from '../../../http/routing/tables/route-keys.js';
import type { Dismissals, HostRequest, RequestedHost } from '../../../worker/routes/awaited-hosts.js';
import type { RoutesContext } from '../routes-context.js';
import type { ProviderUser } from './provider-users.js';
import { RouteProvider } from './route-provider.js';

/** A use of a provider. */
export interface RouteLease extends PrimaryPart {
  /** Id of the route configuration on the workers. */
  readonly id: number;
  /** Returns all problems of the current routes for chains with these filters; '' if there are none. */
  problemsFor(filters: Iterable<RouteFilters>): string;
}

export class RouteProviders {
  readonly #context: RoutesContext;
  readonly #nextId: () => number;
  readonly #byKey = new Map<string, RouteProvider>();

  constructor(context: RoutesContext, nextId: () => number) {
    this.#context = context;
    this.#nextId = nextId;
    context.onDemand.onMessage = (worker, message) => {
      const request = message as HostRequest | Dismissals;
      if ('dismissed' in request) this.#provider(request.routes)?.countDismissed(request.dismissed);
      else this.#handleRequest(request, worker);
    };
  }

  get all(): Iterable<RouteProvider> {
    return this.#byKey.values();
  }

  /**
   * Leases a route configuration, which workers have until the lease is closed. Throws BatonError CONFIG_INVALID when the current
   * routes cannot be used with the user's filters.
   */
  use(source: ConfigSource, name: string, statPrefix: string, user: ProviderUser): RouteLease {
    const key = rdsKey(source, name);
    const existing = this.#byKey.get(key);
    const problems = existing?.problemsFor(user.filters()) ?? '';
    if (problems !== '') throw new BatonError('CONFIG_INVALID', problems);
    const provider = existing ?? this.#add(key, source, name, statPrefix);
    provider.add(user);
    return {
      id: provider.id,
      problemsFor: (filters) => provider.problemsFor(filters),
      close: () => {
        provider.remove(user);
        if (!provider.isUsed) this.#remove(provider);
      },
    };
  }

  #add(key: string, source: ConfigSource, name: string, statPrefix: string): RouteProvider {
    const provider = new RouteProvider(this.#context, { id: this.#nextId(), key, source, name, statPrefix });
    this.#byKey.set(key, provider);
    this.#context.publish({ routes: [provider.snapshot] });
    return provider;
  }

  #remove(provider: RouteProvider): void {
    if (this.#byKey.get(provider.key) !== provider) return;
    this.#byKey.delete(provider.key);
    provider.close();
    this.#context.publish({ removedRoutes: [provider.id] });
    provider.releaseStats();
  }

  #handleRequest({ routes, host, isWanted }: HostRequest, worker: number): void {
    const provider = this.#provider(routes);
    if (provider !== undefined)
      return isWanted ? provider.requestHost(host, worker) : provider.releaseHost(host, worker);
    if (isWanted) this.#context.onDemand.publish({ routes, host } satisfies RequestedHost);
  }

  #provider(id: number): RouteProvider | undefined {
    for (const provider of this.#byKey.values()) if (provider.id === id) return provider;
    return undefined;
  }
}
