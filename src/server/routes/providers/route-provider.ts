// One route configuration that a source delivers (RDS), for all connection managers that name it: checked here, published to
// the workers, and kept when the source has nothing better.

import { shownName } from '../../../common/text/shown.js';
import type { ConfigSource, RouteConfiguration, VirtualHost } from '../../../config/generated/api.js';
import type { RouteFilters } from '../../../extensions/factories.js';
import { getLogger } from '../../../log/logger.js';
import { RouteUpdateStats } from '../../../stats/layouts/xds.js';
import type { RouteSnapshot } from '../../../worker/messages/messages.js';
import { type PackedRoutes, packRoutes, packRoutesInSteps } from '../../../worker/messages/packed-routes.js';
import type { WantedHost } from '../../../worker/routes/awaited-hosts.js';
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
import { ReloadCounts } from '../reload-counts.js';
import type { RoutesContext } from '../routes-context.js';
import { type ProviderUser, ProviderUsers } from './provider-users.js';
import { RoutePublication } from './route-publication.js';
import { VirtualHosts } from './virtual-hosts.js';

const logger = getLogger('router');

export interface ProviderOptions {
  /** Never that of another one. */
  readonly id: number;
  /** As in route-keys.ts. */
  readonly key: string;
  readonly source: ConfigSource;
  /** Of the route configuration. */
  readonly name: string;
  /** `http.ingress.`, of the connection manager that was the first to use it. */
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
  #state: DynamicState = REQUESTED;
  #resource: Resource<RouteConfiguration> | undefined;
  /** The resource's with the virtual hosts that have come for it. */
  #config: RouteConfiguration | undefined;
  /** What workers were told last. */
  #packed: PackedRoutes | undefined;
  #virtualHosts: VirtualHosts | undefined;
  #isClosed = false;

  /** Subscribes. */
  constructor(context: RoutesContext, { id, key, source, name, statPrefix }: ProviderOptions) {
    this.id = id;
    this.key = key;
    this.name = name;
    this.#context = context;
    this.#statPrefix = statPrefix;
    this.#publication = new RoutePublication({
      publish: () => {
        context.publish({ routes: [this.snapshot] });
        return this.#config?.virtual_hosts?.length ?? 0;
      },
      settle: (name) => context.onDemand.publish({ routes: id, host: name } satisfies WantedHost),
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

  /** Everything that is wrong with the routes that there are for chains with these filters; ''. */
  problemsFor(filters: Iterable<RouteFilters>): string {
    return this.#config === undefined ? '' : this.#problems(this.#config, filters);
  }

  /** It is told when it can go on: at once when routes are there. */
  add(user: ProviderUser): void {
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

  /** What is in use, as the source has sent it. */
  get resource(): Resource<RouteConfiguration> | undefined {
    return this.#resource;
  }

  /** Virtual hosts that have come for it. */
  get virtualHosts(): Iterable<Resource<VirtualHost>> {
    return this.#virtualHosts?.resources ?? [];
  }

  get snapshot(): RouteSnapshot {
    if (this.#config !== undefined) this.#packed = packRoutes(this.#config, this.#packed);
    return { id: this.id, key: this.key, config: this.#packed };
  }

  *update(update: Update<RouteConfiguration>): StepwiseUpdate {
    const ofThis = ({ name }: { readonly name: string }) => name === this.name;
    const refusal = update.refused.find(ofThis);
    if (refusal !== undefined) this.#refuse(refusal);
    const resource = update.resources.find(ofThis);
    const rejection = resource && (yield* this.#take(resource));
    if (this.#isClosed) return [];
    const isMissing = resource === undefined && refusal === undefined && !hasUnnamed(update.refused);
    if (isMissing) this.#miss(update.removed.includes(this.name));
    // One that the source no longer has stays in use; its users may wait for an answer, and this is one.
    if (this.#virtualHosts?.isReady !== false) this.#settle();
    return rejection === undefined ? [] : [rejection];
  }

  fetchTimedOut(): void {
    logger.warning(
      `route configuration '${shownName(this.name)}' has not come in time: requests that it is for get 404`,
    );
    this.#settle();
  }

  /** Requests of a worker wait for this virtual host, in lower case: the workers are told when it is settled. */
  ask(host: string, worker: number): void {
    if (this.#virtualHosts === undefined) this.#publication.settled(host);
    else this.#virtualHosts.ask(host, worker);
  }

  /** No request of the worker waits for it any more. */
  forget(host: string, worker: number): void {
    this.#virtualHosts?.forget(host, worker);
  }

  /** So many requests of a worker no longer wait, because too many others do. */
  countDismissed(requests: number): void {
    this.#virtualHosts?.countDismissed(requests);
  }

  close(): void {
    this.#isClosed = true;
    this.#subscription.close();
    this.#virtualHosts?.close();
    this.#publication.close();
    this.#counts.close();
  }

  /** The update has none; `isGone`: it says so. */
  #miss(isGone: boolean): void {
    if (!isGone) this.#counts.besides.increment(RouteUpdateStats.at.update_empty);
    if (this.#resource !== undefined) return;
    if (isGone) this.#state = DOES_NOT_EXIST;
    logger.warning(`the source has no route configuration '${shownName(this.name)}': requests that it is for get 404`);
  }

  *#take(resource: Resource<RouteConfiguration>): Generator<void, Rejection | undefined> {
    const { message } = resource;
    const isChanged = message !== this.#resource?.message;
    const former = this.#virtualHosts;
    // Virtual hosts of another source are not those of this configuration.
    const staysSource = former !== undefined && isSameSource(message.vhds?.config_source, former.source);
    const problems = isChanged ? yield* this.#prepare(staysSource ? withHosts(message, former.all) : message) : '';
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
    // Meanwhile other virtual hosts may have come.
    this.#config = staysSource ? withHosts(message, former.all) : message;
    this.#publication.now();
    if (staysSource) former.ownChanged();
    else this.#subscribeHosts(message.vhds?.config_source);
    this.#counts.reloaded();
    logger.debug(`rds: the routes '${shownName(this.name)}' are those of version '${shownName(resource.version)}'`);
    return undefined;
  }

  /** Checks routes, and makes what workers will be told of them. Returns what is wrong with them. */
  *#prepare(config: RouteConfiguration): Generator<void, string> {
    const before = this.#signatures;
    const clusterProblem = (name: string) => this.#context.clusterProblem(name);
    const problems = yield* routeProblemsInSteps(config, this.#users.filters(), clusterProblem, false);
    if (problems === '') yield* packRoutesInSteps(config, this.#packed);
    // Chains that have come meanwhile may have filters that cannot use it.
    return this.#signatures === before ? problems : this.#problems(config, this.#users.filters());
  }

  /** Of the filters of its users. */
  get #signatures(): string {
    const signatures = new Set(Array.from(this.#users.filters(), ({ signature }) => signature));
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
          this.#config = withHosts(this.#resource!.message, hosts);
          this.#publication.soon();
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
    return routeProblems(config, filters, (name) => this.#context.clusterProblem(name), false);
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
