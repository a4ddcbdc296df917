// One route configuration that a source delivers (RDS), shared by all connection managers that name it. It checks each version,
// publishes it to the workers, and keeps the last accepted version.

import { shownName } from '../../../common/text/shown.js';
import type { ConfigSource, RouteConfiguration, VirtualHost } from '../../../config/generated/api.js';
import type { RouteFilters } from '../../../extensions/factories.js';
import { getLogger } from '../../../log/logger.js';
import { RouteUpdateStats } from '../../../stats/layouts/xds.js';
import type { RouteSnapshot } from '../../../worker/messages/messages.js';
import { type PackedRoutes, packRoutes, packRoutesInSteps } from '../../../worker/messages/packed-routes.js';
import type { RequestedHost } from '../../../worker/routes/awaited-hosts.js';
import {
  accepted,
  DOES_NOT_EXIST,
  type DynamicState,
  REQUESTED,
  refused,
  rejected,
} from '../../../xds/dynamic-state.js';
import { hasUnnamed, type RefusedResource, type Resource, type Update } from '../../../xds/resource.js';
import type { Rejection, StepwiseUpdate, Subscription, Watcher } from '../../../xds/subscription.js';
import { routeProblems, routeProblemsInSteps } from '../check-routes.js';
import { HeldRouteSecrets } from '../held-route-secrets.js';
import { HeldRouteStats } from '../held-route-stats.js';
import { ReloadCounts } from '../reload-counts.js';
import type { RoutesContext } from '../routes-context.js';
import { type ProviderUser, ProviderUsers } from './provider-users.js';
import { RoutePublication } from './route-publication.js';
import { VirtualHosts } from './virtual-hosts.js';

const logger = getLogger('router');

export interface ProviderOptions {
  /** Unique; never reused. */
  readonly id: number;
  /** See route-keys.ts. */
  readonly key: string;
  readonly source: ConfigSource;
  /** Name of the route configuration. */
  readonly name: string;
  /** `http.ingress.`, of the first connection manager that used it. */
  readonly statPrefix: string;
}

export class RouteProvider implements Watcher<RouteConfiguration> {
  readonly id: number;
  readonly key: string;
  readonly name: string;
  readonly #context: RoutesContext;
  readonly #statPrefix: string;
  readonly #counts: ReloadCounts;
  readonly #subscription: Subscription;
  readonly #users = new ProviderUsers();
  readonly #publication: RoutePublication;
  readonly #stats: HeldRouteStats;
  #state: DynamicState = REQUESTED;
  #resource: Resource<RouteConfiguration> | undefined;
  /** The resource's routes with the discovered virtual hosts. */
  #config: RouteConfiguration | undefined;
  /** The routes as last published. */
  #packed: PackedRoutes | undefined;
  #virtualHosts: VirtualHosts | undefined;
  readonly #secrets: HeldRouteSecrets;
  #isClosed = false;

  /** Subscribes. */
  constructor(context: RoutesContext, { id, key, source, name, statPrefix }: ProviderOptions) {
    this.id = id;
    this.key = key;
    this.name = name;
    this.#context = context;
    this.#statPrefix = statPrefix;
    this.#stats = new HeldRouteStats(context);
    this.#secrets = new HeldRouteSecrets(context);
    this.#publication = new RoutePublication({
      publish: () => {
        this.#stats.add([this.#config ?? {}]);
        context.publish({ routes: [this.snapshot] });
        this.#stats.keepLatest();
        this.#secrets.keepLatest();
        return this.#config?.virtual_hosts?.length ?? 0;
      },
      settle: (name) => context.onDemand.publish({ routes: id, host: name } satisfies RequestedHost),
    });
    const prefix = `${statPrefix}rds.${name}.`;
    this.#counts = new ReloadCounts(context.store, prefix, RouteUpdateStats);
    this.#subscription = context.sources.subscribe<RouteConfiguration>({
      source,
      type: 'route',
      names: new Set([name]),
      statPrefix: prefix,
      watcher: this,
    });
  }

  /** Returns all problems of the current routes for chains with these filters; '' when there are none. */
  problemsFor(filters: Iterable<RouteFilters>): string {
    return this.#config === undefined ? '' : this.#problems(this.#config, filters);
  }

  /** Adds a user. Its ready() is called at once when routes are present. */
  add(user: ProviderUser): void {
    this.#users.add(user);
  }

  remove(user: ProviderUser): void {
    this.#users.remove(user);
  }

  /** The filters of the chains that have the routes. */
  get filters(): Iterable<RouteFilters> {
    return this.#users.filters();
  }

  get isUsed(): boolean {
    return !this.#users.isEmpty;
  }

  get state(): DynamicState {
    return this.#state;
  }

  /** The routes with the discovered virtual hosts; undefined until they have arrived. */
  get config(): RouteConfiguration | undefined {
    return this.#config;
  }

  /** The resource in use, as the source has sent it. */
  get resource(): Resource<RouteConfiguration> | undefined {
    return this.#resource;
  }

  /** The discovered virtual hosts. */
  get virtualHosts(): Iterable<Resource<VirtualHost>> {
    return this.#virtualHosts?.resources ?? [];
  }

  get snapshot(): RouteSnapshot {
    if (this.#config !== undefined) this.#packed = packRoutes(this.#config, this.#packed);
    return { id: this.id, key: this.key, config: this.#packed };
  }

  *update(update: Update<RouteConfiguration>): StepwiseUpdate {
    const isThis = ({ name }: { readonly name: string }) => name === this.name;
    const refusal = update.refused.find(isThis);
    if (refusal !== undefined) this.#refuse(refusal);
    const resource = update.resources.find(isThis);
    const rejection = resource && (yield* this.#take(resource));
    if (this.#isClosed) return [];
    const isMissing = resource === undefined && refusal === undefined && !hasUnnamed(update.refused);
    if (isMissing) this.#handleMissing(update.removed.includes(this.name));
    // A configuration that the source no longer has stays in use. Its users wait for an answer, and this is one.
    if (this.#virtualHosts?.isReady !== false) this.#settle();
    return rejection === undefined ? [] : [rejection];
  }

  fetchTimedOut(): void {
    logger.warning(
      `route configuration '${shownName(this.name)}' did not arrive in time: its requests are answered with 404`,
    );
    this.#settle();
  }

  /** Called when requests of a worker wait for this virtual host, in lower case. The workers are notified when it is settled. */
  requestHost(host: string, worker: number): void {
    if (this.#virtualHosts === undefined) this.#publication.settled(host);
    else this.#virtualHosts.request(host, worker);
  }

  /** Called when no request of the worker waits for it any more. */
  releaseHost(host: string, worker: number): void {
    this.#virtualHosts?.release(host, worker);
  }

  /** Counts requests of a worker that were dismissed because too many wait. */
  countDismissed(requests: number): void {
    this.#virtualHosts?.countDismissed(requests);
  }

  close(): void {
    this.#isClosed = true;
    this.#subscription.close();
    this.#virtualHosts?.close();
    this.#publication.close();
    this.#secrets.close();
    this.#counts.close();
  }

  /** Called when workers no longer have the routes. */
  releaseStats(): void {
    this.#stats.close();
  }

  /** Called when an update lacks the resource; `isGone`: the update removes it. */
  #handleMissing(isGone: boolean): void {
    if (!isGone) this.#counts.extra.increment(RouteUpdateStats.at.update_empty);
    if (this.#resource !== undefined) return;
    if (isGone) this.#state = DOES_NOT_EXIST;
    logger.warning(
      `the source has no route configuration '${shownName(this.name)}': its requests are answered with 404`,
    );
  }

  *#take(resource: Resource<RouteConfiguration>): Generator<void, Rejection | undefined> {
    const { message } = resource;
    const isChanged = message !== this.#resource?.message;
    const former = this.#virtualHosts;
    // Virtual hosts of another source do not belong to this configuration.
    const keepsSource = former !== undefined && isSameSource(message.vhds?.config_source, former.source);
    const problems = isChanged ? yield* this.#prepare(keepsSource ? withHosts(message, former.all) : message) : '';
    if (this.#isClosed) return undefined;
    if (problems !== '') {
      const rejection = { name: this.name, details: problems };
      this.#state = rejected(this.#state, resource, rejection);
      logger.warning(`an update of routes is rejected: ${problems}`);
      return rejection;
    }
    this.#state = accepted(resource, isChanged ? undefined : this.#state.lastUpdated);
    this.#resource = resource;
    if (!isChanged) return undefined;
    // Other virtual hosts may have arrived since.
    this.#setConfig(keepsSource ? withHosts(message, former.all) : message);
    this.#publication.publishNow();
    if (keepsSource) former.ownChanged();
    else this.#subscribeHosts(message.vhds?.config_source);
    this.#counts.reloaded();
    logger.debug(`rds: the routes '${shownName(this.name)}' have version '${shownName(resource.version)}'`);
    return undefined;
  }

  #setConfig(config: RouteConfiguration): void {
    this.#secrets.add([config]);
    this.#config = config;
  }

  /** Checks routes, and packs them for the workers. Returns their problems. */
  *#prepare(config: RouteConfiguration): Generator<void, string> {
    const before = this.#signatures;
    const problems = yield* routeProblemsInSteps(config, this.#users.filters(), this.#context, false);
    if (problems === '') yield* packRoutesInSteps(config, this.#packed);
    // Chains added since may have filters that cannot use it.
    return this.#signatures === before ? problems : this.#problems(config, this.#users.filters());
  }

  /** The signatures of its users' filters, with their modules. */
  get #signatures(): string {
    const signatures = new Set(
      Array.from(this.#users.filters(), ({ scripts = [], signature }) => signature + JSON.stringify([...scripts])),
    );
    return [...signatures].sort().join('\n');
  }

  #subscribeHosts(source: ConfigSource | undefined): void {
    this.#virtualHosts?.close();
    this.#virtualHosts =
      source &&
      new VirtualHosts(this.#context, source, this.name, this.#statPrefix, {
        problemsOf: (host) =>
          this.#problems({ ...this.#resource!.message, virtual_hosts: [host] }, this.#users.filters()),
        own: () => this.#resource!.message.virtual_hosts ?? [],
        changed: (hosts) => {
          this.#setConfig(withHosts(this.#resource!.message, hosts));
          this.#publication.schedule();
        },
        ready: () => this.#settle(),
        settled: (host) => this.#publication.settled(host),
      });
  }

  #refuse(refusal: RefusedResource): void {
    this.#state = refused(this.#state, refusal);
    logger.warning(`an update of the routes '${shownName(this.name)}' is refused: ${refusal.details}`);
  }

  #problems(config: RouteConfiguration, filters: Iterable<RouteFilters>): string {
    return routeProblems(config, filters, this.#context, false);
  }

  #settle(): void {
    if (this.#users.isSettled) return;
    this.#publication.flush();
    this.#users.settle();
  }
}

function withHosts(config: RouteConfiguration, hosts: readonly VirtualHost[]): RouteConfiguration {
  return { ...config, virtual_hosts: [...(config.virtual_hosts ?? []), ...hosts] };
}

function isSameSource(one: ConfigSource | undefined, other: ConfigSource): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
