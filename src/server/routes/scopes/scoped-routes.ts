// The scopes of connection managers (scoped_routes), from their configuration or from a source (SRDS). Each scope has its own
// routes, or names a route configuration that a source delivers.

import { BatonError, messageOf } from '../../../common/errors/errors.js';
import { shownName } from '../../../common/text/shown.js';
import type { RouteConfiguration, ScopedRouteConfiguration, ScopedRoutes } from '../../../config/generated/api.js';
import type { RouteFilters } from '../../../extensions/factories.js';
import { scopeKey } from '../../../http/routing/tables/scope-key.js';
import { getLogger } from '../../../log/logger.js';
import { ScopedRoutesStats } from '../../../stats/layouts/xds.js';
import type { RouteScopeSnapshot, RouteScopesSnapshot, RouteSnapshot } from '../../../worker/messages/messages.js';
import { packRoutes } from '../../../worker/messages/packed-routes.js';
import { accepted, type DynamicState, REQUESTED, refused, rejected } from '../../../xds/dynamic-state.js';
import { hasUnnamed, type Resource, type Update } from '../../../xds/resource.js';
import type { Rejection, Subscription, Watcher } from '../../../xds/subscription.js';
import { routeProblems } from '../check-routes.js';
import { HeldRouteSecrets } from '../held-route-secrets.js';
import { HeldRouteStats } from '../held-route-stats.js';
import { type ProviderUser, ProviderUsers } from '../providers/provider-users.js';
import type { RouteProviders } from '../providers/route-providers.js';
import { ReloadCounts } from '../reload-counts.js';
import type { RoutesContext } from '../routes-context.js';
import { ScopeLeases } from './scope-leases.js';

const logger = getLogger('router');

type ScopeResource = Resource<ScopedRouteConfiguration>;

/** A scope in use. */
interface Scope {
  readonly resource: ScopeResource;
  /** Id of its routes on the workers. */
  readonly routes: number;
  /** The scope's own routes. */
  readonly inline: RouteConfiguration | undefined;
}

/** Scopes by name. */
type Scopes = ReadonlyMap<string, Scope>;

export interface ScopedRoutesOptions {
  /** See route-keys.ts. */
  readonly key: string;
  readonly config: ScopedRoutes;
  /** `http.ingress.`, of the first connection manager that used them. */
  readonly statPrefix: string;
  /** Returns ids of route configurations. */
  readonly nextId: () => number;
}

export class ScopedRoutesProvider implements Watcher<ScopedRouteConfiguration> {
  readonly key: string;
  readonly config: ScopedRoutes;
  readonly since = new Date();
  readonly #context: RoutesContext;
  readonly #statPrefix: string;
  readonly #nextId: () => number;
  readonly #users = new ProviderUsers();
  /** Undefined without rds_config_source. */
  readonly #leases: ScopeLeases | undefined;
  readonly #stats: HeldRouteStats;
  #scopes: Scopes = new Map();
  /** Refused because other scopes have their keys. They are used when those are gone. */
  readonly #clashing = new Map<string, ScopeResource>();
  #state: DynamicState = REQUESTED;
  /** Undefined without a source. */
  #counts: ReloadCounts | undefined;
  #subscription: Subscription | undefined;
  readonly #secrets: HeldRouteSecrets;
  #hasAnswer = false;

  constructor(context: RoutesContext, providers: RouteProviders, options: ScopedRoutesOptions) {
    this.key = options.key;
    this.config = options.config;
    this.#context = context;
    this.#stats = new HeldRouteStats(context);
    this.#secrets = new HeldRouteSecrets(context);
    this.#statPrefix = options.statPrefix;
    this.#nextId = options.nextId;
    const { rds_config_source: source } = options.config;
    this.#leases =
      source &&
      new ScopeLeases({
        ...{ providers, source },
        statPrefix: options.statPrefix,
        filters: () => this.#users.filters(),
        ready: () => this.#settleIfReady(),
      });
  }

  /** Subscribes, or takes the configured scopes. Throws BatonError CONFIG_INVALID when these cannot be used. */
  start(): void {
    const { name = '', scoped_rds: srds, scoped_route_configurations_list: list } = this.config;
    if (srds !== undefined) {
      const statPrefix = `${this.#statPrefix}scoped_rds.${name}.`;
      const source = srds.scoped_rds_config_source!;
      this.#counts = new ReloadCounts(this.#context.store, statPrefix, ScopedRoutesStats);
      const request = { source, type: 'scoped-route', names: '*', statPrefix, watcher: this } as const;
      this.#subscription = this.#context.sources.subscribe<ScopedRouteConfiguration>(request);
      return;
    }
    const scopes = (list?.scoped_route_configurations ?? []).map(inlineScope);
    const [problem] = this.#apply(new Map(), scopes);
    if (problem !== undefined) {
      throw new BatonError('CONFIG_INVALID', `scope '${problem.name}': ${problem.details}`);
    }
    this.#answered();
  }

  /** Adds a user. Throws BatonError CONFIG_INVALID when scopes cannot be used with its filters. */
  add(user: ProviderUser): void {
    const own = Array.from(ownRoutes(this.#scopes).values(), (config) => this.#problems(config, user.filters()));
    const named = this.#leases?.problemsFor(user) ?? [];
    const problem = [...own, ...named].find((each) => each !== '');
    if (problem !== undefined) throw new BatonError('CONFIG_INVALID', problem);
    this.#users.add(user);
  }

  remove(user: ProviderUser): void {
    this.#users.remove(user);
  }

  /** The filters of the chains that have the scopes. */
  get filters(): Iterable<RouteFilters> {
    return this.#users.filters();
  }

  /** The scopes' own routes. */
  get routes(): Iterable<RouteConfiguration> {
    return ownRoutes(this.#scopes).values();
  }

  get isUsed(): boolean {
    return !this.#users.isEmpty;
  }

  get state(): DynamicState {
    return this.#state;
  }

  /** The scopes in use. */
  *resources(): Generator<ScopeResource, void> {
    for (const { resource } of this.#scopes.values()) yield resource;
  }

  get snapshot(): RouteScopesSnapshot {
    return { key: this.key, scopes: Array.from(this.#scopes.values(), scopeSnapshot) };
  }

  /** Snapshots of scopes with their own routes. */
  get routeSnapshots(): RouteSnapshot[] {
    return Array.from(ownRoutes(this.#scopes), ([id, config]) => ({ id, key: '', config: packRoutes(config) }));
  }

  update(update: Update<ScopedRouteConfiguration>): readonly Rejection[] {
    if (update.isComplete && update.resources.length + update.refused.length === 0)
      this.#counts?.extra.increment(ScopedRoutesStats.at.update_empty);
    const kept = new Map(update.isComplete && !hasUnnamed(update.refused) ? [] : this.#scopes);
    // A refused scope exists in another version: the previous one stays in use.
    for (const { name } of update.refused) {
      const before = this.#scopes.get(name);
      if (before !== undefined) kept.set(name, before);
    }
    for (const name of update.removed) kept.delete(name);
    const mentioned = new Set([...update.removed, ...[...update.refused, ...update.resources].map(({ name }) => name)]);
    const clashing = update.isComplete ? [] : [...this.#clashing.values()].filter(({ name }) => !mentioned.has(name));
    this.#clashing.clear();
    const rejections = this.#apply(kept, update.resources);
    for (const { name, details } of rejections)
      logger.warning(`the scope '${shownName(name)}' is rejected: ${details}`);
    // Retried after the others, which may have released their keys.
    if (clashing.length > 0) this.#apply(this.#scopes, clashing);
    this.#note(update, rejections);
    this.#answered();
    return rejections;
  }

  fetchTimedOut(): void {
    logger.warning(
      `the scopes '${shownName(this.config.name ?? '')}' did not arrive in time: their requests are answered with 404`,
    );
    this.#answered();
  }

  close(): void {
    this.#subscription?.close();
    this.#context.publish({ removedRouteScopes: [this.key], removedRoutes: [...ownRoutes(this.#scopes).keys()] });
    this.#stats.close();
    this.#leases?.close();
    this.#secrets.close();
    this.#counts?.close();
  }

  /** Puts into use `kept` and the usable ones of `fresh`. Returns the others of `fresh`, whose previous versions stay. */
  #apply(kept: Scopes, fresh: readonly ScopeResource[]): Rejection[] {
    const owners = ownersOfKeys(kept, fresh);
    const next = new Map(kept);
    const rejections: Rejection[] = [];
    for (const resource of fresh) {
      const { name } = resource;
      if (owners.get(keyOf(resource)) !== name) this.#clashing.set(name, resource);
      try {
        next.set(name, this.#scopeOf(resource, owners));
      } catch (error) {
        rejections.push({ name, details: messageOf(error) });
        const before = this.#scopes.get(name);
        if (before !== undefined && (owners.get(keyOf(before.resource)) ?? name) === name) next.set(name, before);
        else next.delete(name);
      }
    }
    this.#replace(next);
    return rejections;
  }

  /** Workers receive new routes before the scopes that lead to them, and lose old routes after the scopes that did. */
  #replace(next: Scopes): void {
    const former = this.#scopes;
    this.#scopes = next;
    if (this.#hasAnswer && areSame(former, next)) return;
    this.#counts?.reloaded();
    this.#counts?.extra.set(ScopedRoutesStats.at.all_scopes, next.size);
    this.#counts?.extra.set(ScopedRoutesStats.at.active_scopes, next.size);
    this.#secrets.add(ownRoutes(next).values());
    const known = ownRoutes(former);
    const routes = this.routeSnapshots.filter(({ id }) => !known.has(id));
    this.#stats.add(ownRoutes(next).values());
    this.#context.publish({ routes, routeScopes: [this.snapshot] });
    const kept = ownRoutes(next);
    const removedRoutes = [...known.keys()].filter((id) => !kept.has(id));
    if (removedRoutes.length > 0) this.#context.publish({ removedRoutes });
    this.#stats.keepLatest();
    this.#secrets.keepLatest();
    this.#leases?.keep(new Set(Array.from(next.values(), ({ routes: id }) => id)));
  }

  /** Creates a scope, and leases the routes that it names. Throws when it cannot be used. */
  #scopeOf(resource: ScopeResource, owners: ReadonlyMap<string, string>): Scope {
    const { message, name } = resource;
    const { route_configuration: inline, route_configuration_name: named = '' } = message;
    const owner = owners.get(keyOf(resource));
    if (owner !== name) throw new Error(`its key is that of the scope '${owner}'`);
    if (inline === undefined) return { resource, routes: this.#lease(named), inline };
    if (named !== '') throw new Error('it has both its own routes and route_configuration_name');
    const problems = this.#problems(inline, this.#users.filters());
    if (problems !== '') throw new Error(problems);
    const before = this.#scopes.get(name);
    const isSame = before?.resource.message === message;
    return { resource, routes: isSame ? before.routes : this.#nextId(), inline };
  }

  #lease(name: string): number {
    if (name === '') throw new Error('it needs route_configuration_name or route_configuration');
    if (this.#leases === undefined) throw new Error('scoped_routes has no rds_config_source to get its routes from');
    return this.#leases.take(name);
  }

  #problems(config: RouteConfiguration, filters: Iterable<RouteFilters>): string {
    return routeProblems(config, filters, this.#context, true);
  }

  /** Records the state for dumps; of several failures the first. */
  #note(
    { refused: refusals, resources, version }: Update<ScopedRouteConfiguration>,
    [first]: readonly Rejection[],
  ): void {
    this.#state = accepted({ version });
    const [refusal] = refusals;
    const resource = first && resources.find(({ name }) => name === first.name);
    if (refusal !== undefined) this.#state = refused(this.#state, refusal);
    else if (resource !== undefined) this.#state = rejected(this.#state, resource, first!);
  }

  #answered(): void {
    this.#hasAnswer = true;
    this.#settleIfReady();
  }

  #settleIfReady(): void {
    if (!this.#users.isSettled && this.#hasAnswer && this.#leases?.areReady !== false) this.#users.settle();
  }
}

function inlineScope(message: ScopedRouteConfiguration): ScopeResource {
  return { name: message.name ?? '', version: '', message, aliases: [], sensitive: [] };
}

function fragmentsOf({ key }: ScopedRouteConfiguration): string[] {
  return (key?.fragments ?? []).map(({ string_key }) => string_key ?? '');
}

function scopeSnapshot({ resource, routes }: Scope): RouteScopeSnapshot {
  return { fragments: fragmentsOf(resource.message), routes };
}

function keyOf({ message }: ScopeResource): string {
  return scopeKey(fragmentsOf(message));
}

/**
 * Maps keys to names of scopes. A key shared by several scopes belongs to the first of them, with unchanged scopes before changed
 * ones.
 */
function ownersOfKeys(kept: Scopes, fresh: readonly ScopeResource[]): Map<string, string> {
  const changed = new Set(fresh.map(({ name }) => name));
  const all = new Map<string, ScopeResource>();
  for (const { resource } of kept.values()) all.set(resource.name, resource);
  for (const resource of fresh) all.set(resource.name, resource);
  const owners = new Map<string, string>();
  for (const isFresh of [false, true]) {
    for (const [name, resource] of all) {
      if (changed.has(name) === isFresh && !owners.has(keyOf(resource))) owners.set(keyOf(resource), name);
    }
  }
  return owners;
}

/** Returns the routes of scopes with their own, by id. */
function ownRoutes(scopes: Scopes): Map<number, RouteConfiguration> {
  const routes = new Map<number, RouteConfiguration>();
  for (const { inline, routes: id } of scopes.values()) if (inline !== undefined) routes.set(id, inline);
  return routes;
}

function areSame(some: Scopes, others: Scopes): boolean {
  if (some.size !== others.size) return false;
  for (const [name, { resource }] of some) {
    if (others.get(name)?.resource.message !== resource.message) return false;
  }
  return true;
}
