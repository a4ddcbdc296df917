// The scopes of connection managers (scoped_routes): written in their configuration, or delivered by a source (SRDS). Each
// scope has routes of its own, or names a route configuration that a source delivers.

import { BatonError } from '../../../common/errors/errors.js';
import type { RouteConfiguration, ScopedRouteConfiguration, ScopedRoutes } from '../../../config/generated/api.js';
import type { RouteFilters } from '../../../extensions/factories.js';
import { scopeKey } from '../../../http/routing/tables/scope-key.js';
import { getLogger } from '../../../log/logger.js';
import type { RouteSnapshot, ScopeSnapshot, ScopesSnapshot } from '../../../worker/messages/messages.js';
import { packRoutes } from '../../../worker/messages/packed-routes.js';
import { accepted, type DynamicState, REQUESTED, refused, rejected } from '../../../xds/dynamic-state.js';
import { hidesNames, type Resource, type Update } from '../../../xds/resource.js';
import type { Rejection, Subscription, Watcher } from '../../../xds/subscription.js';
import { routeProblems } from '../check-routes.js';
import { type ProviderUser, ProviderUsers } from '../providers/provider-users.js';
import type { RouteProviders } from '../providers/route-providers.js';
import type { RoutesHost } from '../routes-host.js';
import { ScopeCounts } from './scope-counts.js';
import { ScopeLeases } from './scope-leases.js';

const logger = getLogger('router');

type ScopeResource = Resource<ScopedRouteConfiguration>;

/** A scope that is in use. */
interface Scope {
  readonly resource: ScopeResource;
  /** Id of its routes on the workers. */
  readonly routes: number;
  /** Its own. */
  readonly inline: RouteConfiguration | undefined;
}

export interface ScopedRoutesOptions {
  /** As in route-keys.ts. */
  readonly key: string;
  readonly config: ScopedRoutes;
  /** `http.ingress.`, of the connection manager that was the first to use them. */
  readonly statPrefix: string;
  /** Of route configurations. */
  readonly nextId: () => number;
}

export class ScopedRoutesProvider implements Watcher<ScopedRouteConfiguration> {
  readonly key: string;
  readonly config: ScopedRoutes;
  readonly since = new Date();
  readonly #host: RoutesHost;
  readonly #statPrefix: string;
  readonly #nextId: () => number;
  readonly #users = new ProviderUsers();
  /** Undefined without rds_config_source. */
  readonly #leases: ScopeLeases | undefined;
  #scopes = new Map<string, Scope>();
  /** Refused because others have their keys: used when these are gone. */
  readonly #clashing = new Map<string, ScopeResource>();
  #state: DynamicState = REQUESTED;
  #stats: ScopeCounts | undefined;
  #subscription: Subscription | undefined;
  #hasAnswer = false;

  constructor(host: RoutesHost, providers: RouteProviders, options: ScopedRoutesOptions) {
    this.key = options.key;
    this.config = options.config;
    this.#host = host;
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

  /** Subscribes, or takes the scopes of the configuration: throws BatonError CONFIG_INVALID when these cannot be used. */
  start(): void {
    const { name = '', scoped_rds: srds, scoped_route_configurations_list: list } = this.config;
    if (srds !== undefined) {
      const statPrefix = `${this.#statPrefix}scoped_rds.${name}.`;
      const source = srds.scoped_rds_config_source!;
      this.#stats = new ScopeCounts(this.#host.store, statPrefix);
      const request = { source, type: 'scoped-route', names: '*', statPrefix, watcher: this } as const;
      this.#subscription = this.#host.sources.subscribe<ScopedRouteConfiguration>(request);
      return;
    }
    const scopes = (list?.scoped_route_configurations ?? []).map(inlineScope);
    const [problem] = this.#apply(new Map(scopes.map((scope) => [scope.name, scope])), scopes);
    if (problem !== undefined) {
      throw new BatonError('CONFIG_INVALID', `scope '${problem.name}': ${problem.details}`);
    }
    this.#answered();
  }

  /** It is told when it can go on. Throws BatonError CONFIG_INVALID when scopes cannot be used with its filters. */
  add(user: ProviderUser): void {
    for (const { inline } of this.#scopes.values()) {
      const problems = inline && this.#problems(inline, user.filters());
      if (problems) throw new BatonError('CONFIG_INVALID', problems);
    }
    this.#leases?.check(user);
    this.#users.add(user);
  }

  remove(user: ProviderUser): void {
    this.#users.remove(user);
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

  get snapshot(): ScopesSnapshot {
    return { key: this.key, scopes: Array.from(this.#scopes.values(), scopeSnapshot) };
  }

  /** Of scopes with routes of their own. */
  get routeSnapshots(): RouteSnapshot[] {
    return Array.from(this.#scopes.values()).flatMap(({ inline, routes: id }) =>
      inline === undefined ? [] : { id, key: '', config: packRoutes(inline) },
    );
  }

  update(update: Update<ScopedRouteConfiguration>): readonly Rejection[] {
    const next = new Map(update.isComplete && !hidesNames(update.refused) ? [] : this.#inUse());
    // What is refused is there, in another version: the one before it stays.
    for (const refusal of update.refused) {
      const before = this.#scopes.get(refusal.name);
      if (before !== undefined) next.set(refusal.name, before.resource);
    }
    for (const name of update.removed) next.delete(name);
    const told = new Set([...update.removed, ...[...update.refused, ...update.resources].map(({ name }) => name)]);
    const clashing = update.isComplete ? [] : [...this.#clashing.values()].filter(({ name }) => !told.has(name));
    this.#clashing.clear();
    for (const resource of update.resources) next.set(resource.name, resource);
    const rejections = this.#apply(next, update.resources);
    for (const { name, details } of rejections) logger.warning(`the scope '${name}' is rejected: ${details}`);
    // They get what the others have left.
    if (clashing.length > 0) {
      this.#apply(new Map([...this.#inUse(), ...clashing.map((each) => [each.name, each] as const)]), clashing);
    }
    this.#note(update, rejections);
    this.#answered();
    return rejections;
  }

  fetchTimedOut(): void {
    logger.warning(`the scopes '${this.config.name ?? ''}' have not come in time: their requests get 404`);
    this.#answered();
  }

  close(): void {
    this.#subscription?.close();
    const ids = this.routeSnapshots.map(({ id }) => id);
    this.#host.publish({ removedRouteScopes: [this.key], removedRoutes: ids });
    this.#leases?.close();
    this.#stats?.close();
  }

  /** Makes `next` the scopes, but for those of `fresh` that cannot be: these are returned, and stay as they were. */
  #apply(next: Map<string, ScopeResource>, fresh: readonly ScopeResource[]): Rejection[] {
    const owners = ownersOfKeys(next, new Set(fresh.map(({ name }) => name)));
    const rejections = fresh.flatMap((resource) => {
      const details = this.#detailsOf(resource, owners);
      return details === '' ? [] : [{ name: resource.name, details }];
    });
    for (const each of fresh) if (owners.get(keyOf(each)) !== each.name) this.#clashing.set(each.name, each);
    for (const { name } of rejections) {
      const before = this.#scopes.get(name)?.resource;
      if (before === undefined || (owners.get(keyOf(before)) ?? name) !== name) next.delete(name);
      else next.set(name, before);
    }
    this.#replace(next);
    return rejections;
  }

  #replace(next: ReadonlyMap<string, ScopeResource>): void {
    const former = this.#scopes;
    const scopes = new Map<string, Scope>();
    for (const [name, resource] of next) {
      const before = former.get(name);
      scopes.set(name, before?.resource.message === resource.message ? { ...before, resource } : this.#scope(resource));
    }
    const isSame =
      scopes.size === former.size &&
      [...scopes].every(([name, { resource }]) => former.get(name)?.resource.message === resource.message);
    this.#scopes = scopes;
    if (isSame && this.#hasAnswer) return;
    this.#stats?.changed(scopes.size);
    const kept = new Set(this.routeSnapshots.map(({ id }) => id));
    const known = new Set([...former.values()].flatMap(({ inline, routes: id }) => (inline === undefined ? [] : id)));
    const routes = this.routeSnapshots.filter(({ id }) => !known.has(id));
    this.#host.publish({ routes, routeScopes: [this.snapshot] });
    const gone = [...known].filter((id) => !kept.has(id));
    if (gone.length > 0) this.#host.publish({ removedRoutes: gone });
    this.#leases?.keep(new Set(Array.from(scopes.values(), ({ routes }) => routes)));
  }

  #scope(resource: ScopeResource): Scope {
    const { route_configuration: config, route_configuration_name: name = '' } = resource.message;
    if (config === undefined) return { resource, routes: this.#leases!.idOf(name), inline: undefined };
    return { resource, routes: this.#nextId(), inline: config };
  }

  /** What is wrong with a scope among others; '' when it can be used: the routes that it names are leased then. */
  #detailsOf(resource: ScopeResource, owners: ReadonlyMap<string, string>): string {
    const { route_configuration: inline, route_configuration_name: routes = '' } = resource.message;
    const owner = owners.get(keyOf(resource));
    if (owner !== resource.name) return `its key is that of the scope '${owner}'`;
    if (inline !== undefined) {
      return routes === ''
        ? this.#problems(inline, this.#users.filters())
        : 'it has routes of its own, and names others';
    }
    if (routes === '') return 'it needs route_configuration_name or route_configuration';
    if (this.#leases === undefined) return 'scoped_routes has no rds_config_source to get its routes from';
    return this.#leases.take(routes);
  }

  #problems(config: RouteConfiguration, filters: Iterable<RouteFilters>): string {
    return routeProblems(config, filters, (name) => this.#host.clusterProblem(name), true);
  }

  *#inUse(): Generator<[string, ScopeResource], void> {
    for (const [name, { resource }] of this.#scopes) yield [name, resource];
  }

  /** Keeps what dumps show: of several failures the first. */
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

function scopeSnapshot({ resource, routes }: Scope): ScopeSnapshot {
  return { fragments: fragmentsOf(resource.message), routes };
}

function keyOf({ message }: ScopeResource): string {
  return scopeKey(fragmentsOf(message));
}

/** Names of scopes by key: of several with the same one it belongs to the first, and to those that are not fresh before others. */
function ownersOfKeys(scopes: ReadonlyMap<string, ScopeResource>, fresh: ReadonlySet<string>): Map<string, string> {
  const owners = new Map<string, string>();
  for (const isFresh of [false, true]) {
    for (const [name, resource] of scopes) {
      if (fresh.has(name) === isFresh && !owners.has(keyOf(resource))) owners.set(keyOf(resource), name);
    }
  }
  return owners;
}
