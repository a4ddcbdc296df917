// The routes of all connection managers on the primary: those in their own configuration, and those that sources deliver, which
// all connection managers with the same source and name share.

import { BatonError } from '../../common/errors/errors.js';
import { isFileSource } from '../../config/fields/file-of-source.js';
import { ownRoutes } from '../../config/fields/own-routes.js';
import type { Rds, RouteConfiguration, ScopedRoutes } from '../../config/generated/api.js';
import type { PrimaryPart, PrimaryRoutes, RouteFilters, RouteUser } from '../../extensions/factories.js';
import { keyOfScopedRoutes } from '../../http/routing/tables/route-keys.js';
import type { SnapshotParts } from '../workers/snapshots.js';
import { routeProblems } from './check-routes.js';
import { HeldRouteSecrets } from './held-route-secrets.js';
import { HeldRouteStats } from './held-route-stats.js';
import type { ProviderUser } from './providers/provider-users.js';
import type { RouteProvider } from './providers/route-provider.js';
import { RouteProviders } from './providers/route-providers.js';
import type { RoutesContext } from './routes-context.js';
import { ScopedRoutesProvider } from './scopes/scoped-routes.js';

/** Routes in the configuration of a connection manager. */
export interface InlineRoutes {
  readonly config: RouteConfiguration;
  readonly filters: RouteFilters;
  readonly since: Date;
}

export class PrimaryRouteSet implements PrimaryRoutes {
  readonly #context: RoutesContext;
  readonly #inline = new Set<InlineRoutes>();
  readonly #providers: RouteProviders;
  readonly #scoped = new Map<string, ScopedRoutesProvider>();
  #lastId = 0;
  readonly #users = new Set<RouteUser>();

  constructor(context: RoutesContext) {
    this.#context = context;
    this.#providers = new RouteProviders(context, () => ++this.#lastId);
  }

  /** There is a connection manager. */
  get isUsed(): boolean {
    return this.#users.size > 0;
  }

  /** Yields the filters of all chains. */
  *chains(): Generator<RouteFilters, void> {
    for (const { filters } of this.#users) yield filters;
  }

  /** The routes that sources have delivered, or the configured scopes have. */
  *delivered(): Generator<RouteConfiguration, void> {
    for (const { config } of this.#providers.all) if (config !== undefined) yield config;
    for (const { routes } of this.#scoped.values()) yield* routes;
  }

  /** Yields all routes in use, each with the filters of the chains that have them. */
  *routed(): Generator<{ readonly routes: RouteConfiguration; readonly filters: Iterable<RouteFilters> }, void> {
    for (const { config, filters } of this.#inline) yield { routes: config, filters: [filters] };
    for (const { config, filters } of this.#providers.all) if (config !== undefined) yield { routes: config, filters };
    for (const { routes, filters } of this.#scoped.values()) for (const own of routes) yield { routes: own, filters };
  }

  get inline(): Iterable<InlineRoutes> {
    return this.#inline;
  }

  get providers(): Iterable<RouteProvider> {
    return this.#providers.all;
  }

  get scoped(): Iterable<ScopedRoutesProvider> {
    return this.#scoped.values();
  }

  /** Returns the parts of a snapshot for starting workers. */
  snapshots(): Required<Pick<SnapshotParts, 'routes' | 'routeScopes'>> {
    const scoped = [...this.#scoped.values()];
    return {
      routes: [
        ...Array.from(this.#providers.all, ({ snapshot }) => snapshot),
        ...scoped.flatMap(({ routeSnapshots }) => routeSnapshots),
      ],
      routeScopes: scoped.map(({ snapshot }) => snapshot),
    };
  }

  attach(user: RouteUser): PrimaryPart {
    const part = this.#use(user);
    this.#users.add(user);
    return {
      ...part,
      close: () => {
        this.#users.delete(user);
        part.close();
      },
    };
  }

  #use(user: RouteUser): PrimaryPart {
    const { rds, route_config: inline, scoped_routes: scoped } = user.manager;
    if (rds !== undefined) return this.#useProvider(rds, user);
    if (scoped !== undefined) return this.#useScoped(scoped, user);
    return inline === undefined ? EMPTY_PART : this.#useInline(inline, user);
  }

  #useInline(config: RouteConfiguration, { filters, waitFor }: RouteUser): PrimaryPart {
    this.#check(config, filters);
    const secrets = new HeldRouteSecrets(this.#context);
    secrets.add([config], waitFor);
    const routes = { config, filters, since: new Date() };
    const stats = new HeldRouteStats(this.#context);
    stats.add([config]);
    this.#inline.add(routes);
    return {
      close: () => {
        this.#inline.delete(routes);
        stats.close();
        secrets.close();
      },
      prepareRoutes: (manager) => {
        const other = ownRoutes(manager) ?? {};
        this.#check(other, filters);
        const useSecrets = secrets.prepare([other]);
        const useStats = stats.prepare([other]);
        return () => {
          useSecrets();
          useStats();
          routes.config = other;
          routes.since = new Date();
          // The caller publishes the routes in this turn.
          setImmediate(() => {
            stats.keepLatest();
            secrets.keepLatest();
          });
        };
      },
    };
  }

  #check(config: RouteConfiguration, filters: RouteFilters): void {
    const problems = routeProblems(config, [filters], this.#context, true);
    if (problems !== '') throw new BatonError('CONFIG_INVALID', problems);
  }

  #useProvider({ config_source: source, route_config_name: name = '' }: Rds, user: RouteUser): PrimaryPart {
    const waiting = waitingUser(user, `RDS ${name}`, isFileSource(source));
    try {
      const lease = this.#providers.use(source!, name, user.statPrefix, waiting);
      return {
        close() {
          lease.close();
          waiting.ready();
        },
      };
    } catch (error) {
      waiting.ready();
      throw error;
    }
  }

  #useScoped(config: ScopedRoutes, user: RouteUser): PrimaryPart {
    const key = keyOfScopedRoutes(config);
    const existing = this.#scoped.get(key);
    const provider = existing ?? this.#newScoped(config, key, user.statPrefix);
    const waiting = waitingUser(user, `SRDS ${config.name ?? ''}`, false);
    const close = () => {
      provider.remove(waiting);
      waiting.ready();
      if (provider.isUsed || this.#scoped.get(key) !== provider) return;
      this.#scoped.delete(key);
      provider.close();
    };
    this.#scoped.set(key, provider);
    try {
      provider.add(waiting);
      if (existing === undefined) provider.start();
    } catch (error) {
      close();
      throw error;
    }
    return { close };
  }

  #newScoped(config: ScopedRoutes, key: string, statPrefix: string): ScopedRoutesProvider {
    const nextId = () => ++this.#lastId;
    return new ScopedRoutesProvider(this.#context, this.#providers, { key, config, statPrefix, nextId });
  }
}

/** Returns the user for a connection manager whose listener waits for the routes. */
function waitingUser({ filters, waitFor }: RouteUser, name: string, isLocal: boolean): ProviderUser {
  const target = waitFor(name, isLocal);
  return { filters: () => [filters], ready: () => target.ready() };
}

const EMPTY_PART: PrimaryPart = { close() {} };
