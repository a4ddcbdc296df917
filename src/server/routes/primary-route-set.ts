// The routes of all connection managers as the primary keeps them: what is written in their own configuration, and what
// providers deliver, each of which is shared by all that name it.

import { BatonError } from '../../common/errors.js';
import type { ConfigSource, RouteConfiguration } from '../../config/generated/api.js';
import type { PrimaryPart, PrimaryRoutes, RouteUser } from '../../extensions/factories.js';
import { rdsKey } from '../../http/routing/route-keys.js';
import type { SnapshotParts } from '../workers/snapshots.js';
import { routeProblems } from './check-routes.js';
import { type ProviderUser, RouteProvider } from './route-provider.js';
import type { RoutesHost } from './routes-host.js';

/** Routes that stand in the configuration of a connection manager. */
export interface InlineRoutes {
  readonly config: RouteConfiguration;
  readonly since: Date;
}

export class PrimaryRouteSet implements PrimaryRoutes {
  readonly #host: RoutesHost;
  readonly #inline = new Set<InlineRoutes>();
  readonly #providers = new Map<string, RouteProvider>();
  #lastId = 0;

  constructor(host: RoutesHost) {
    this.#host = host;
  }

  get inline(): Iterable<InlineRoutes> {
    return this.#inline;
  }

  get providers(): Iterable<RouteProvider> {
    return this.#providers.values();
  }

  /** For workers that begin. */
  snapshots(): Required<Pick<SnapshotParts, 'routes'>> {
    return { routes: Array.from(this.#providers.values(), (provider) => provider.snapshot) };
  }

  attach(user: RouteUser): PrimaryPart {
    const { rds, route_config: inline } = user.manager;
    if (rds !== undefined) return this.#useProvider(rds.config_source!, rds.route_config_name ?? '', user);
    return inline === undefined ? NOTHING : this.#useInline(inline, user);
  }

  #useInline(config: RouteConfiguration, { filters }: RouteUser): PrimaryPart {
    const problems = routeProblems(config, [filters], (name) => this.#host.clusterProblem(name), true);
    if (problems !== '') throw new BatonError('CONFIG_INVALID', problems);
    const routes = { config, since: new Date() };
    this.#inline.add(routes);
    return { close: () => void this.#inline.delete(routes) };
  }

  #useProvider(source: ConfigSource, name: string, { filters, statPrefix, waitFor }: RouteUser): PrimaryPart {
    const key = rdsKey(source, name);
    const existing = this.#providers.get(key);
    const problems = existing?.problemsFor(filters) ?? '';
    if (problems !== '') throw new BatonError('CONFIG_INVALID', problems);
    const provider = existing ?? this.#addProvider({ key, source, name, statPrefix });
    const target = waitFor(`RDS ${name}`);
    const user: ProviderUser = { filters, ready: () => target.ready() };
    provider.add(user);
    return {
      close: () => {
        provider.remove(user);
        target.ready();
        if (!provider.isUsed) this.#removeProvider(provider);
      },
    };
  }

  #addProvider(options: { key: string; source: ConfigSource; name: string; statPrefix: string }): RouteProvider {
    const provider = new RouteProvider(this.#host, { id: ++this.#lastId, ...options });
    this.#providers.set(provider.key, provider);
    this.#host.publish({ routes: [provider.snapshot] });
    return provider;
  }

  #removeProvider(provider: RouteProvider): void {
    if (this.#providers.get(provider.key) !== provider) return;
    this.#providers.delete(provider.key);
    provider.close();
    this.#host.publish({ removedRoutes: [provider.id] });
  }
}

const NOTHING: PrimaryPart = { close() {} };
