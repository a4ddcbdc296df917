// The virtual hosts that a source adds to one route configuration (VHDS): those that it sends unsolicited, and those that
// requests on the workers need. They are named `<route configuration>/<host>`.

import type { ConfigSource, VirtualHost } from '../../../config/generated/api.js';
import { getLogger } from '../../../log/logger.js';
import { AwaitedHostStats } from '../../../stats/layouts/xds.js';
import { type Resource, removedNames, type Update } from '../../../xds/resource.js';
import type { Rejection, Subscription, Watcher } from '../../../xds/subscription.js';
import { ReloadCounts } from '../reload-counts.js';
import type { RoutesContext } from '../routes-context.js';
import { domainClashes } from './domain-clashes.js';
import { PendingHosts } from './pending-hosts.js';

const logger = getLogger('router');

export interface VirtualHostsUser {
  /** Returns all problems of this host by itself; '' when there are none. */
  problemsOf(host: VirtualHost): string;
  /** Returns the virtual hosts of the route configuration itself. */
  own(): readonly VirtualHost[];
  /** Called with all virtual hosts when some were added or removed. */
  changed(hosts: readonly VirtualHost[]): void;
  /** Called when the first have arrived, or are not awaited any longer. Called at most once. */
  ready(): void;
  /** Called when it is known whether this host exists, after changed(). */
  settled(host: string): void;
}

export class VirtualHosts implements Watcher<VirtualHost> {
  /** vhds.config_source. */
  readonly source: ConfigSource;
  readonly #user: VirtualHostsUser;
  readonly #prefix: string;
  readonly #counts: ReloadCounts;
  readonly #hosts = new Map<string, Resource<VirtualHost>>();
  /** Refused because other hosts have their domains. They are used when those are gone. */
  #clashing: HostsByName = new Map();
  readonly #subscription: Subscription;
  #isReady = false;
  /** The names to subscribe to: '*', hosts that exist or have existed, and requested ones. */
  readonly #names = new Set<string>(['*']);
  /** #names differs from what the source was asked for. */
  #isChanged = false;
  #isClosed = false;
  /** The hosts for which requests wait, by resource name. */
  readonly #pending: PendingHosts;

  /** Subscribes. `statPrefix`: `http.ingress.` */
  constructor(
    context: RoutesContext,
    source: ConfigSource,
    routes: string,
    statPrefix: string,
    user: VirtualHostsUser,
  ) {
    this.source = source;
    this.#user = user;
    this.#prefix = `${routes}/`;
    const prefix = `${statPrefix}rds.vhds.${routes}.`;
    this.#counts = new ReloadCounts(context.store, prefix, AwaitedHostStats);
    this.#pending = new PendingHosts(this.#prefix, this.#counts.extra, (name) => this.#answer(name, false));
    this.#subscription = context.sources.subscribe<VirtualHost>({
      source,
      type: 'virtual-host',
      names: new Set(this.#names),
      statPrefix: prefix,
      watcher: this,
    });
  }

  /** The first have arrived, or are not awaited any longer. */
  get isReady(): boolean {
    return this.#isReady;
  }

  get resources(): Iterable<Resource<VirtualHost>> {
    return this.#hosts.values();
  }

  get all(): readonly VirtualHost[] {
    return messagesOf(this.#hosts);
  }

  /** Requests a host, in lower case, for a worker. The answer is settled(). */
  request(host: string, worker: number): void {
    const name = this.#prefix + host;
    if (this.#pending.join(name, worker)) return;
    // A host in the subscription is up to date: the source reports its changes.
    if (this.#names.has(name)) return this.#user.settled(host);
    this.#pending.add(name, worker);
    this.#names.add(name);
    this.#subscribeSoon();
  }

  /** Called when the worker no longer waits for the host. Without another one that waits, the host leaves the subscription. */
  release(host: string, worker: number): void {
    const name = this.#prefix + host;
    if (this.#pending.leave(name, worker) && this.#names.delete(name)) this.#subscribeSoon();
  }

  countDismissed(requests: number): void {
    this.#counts.extra.add(AwaitedHostStats.at.requests_overflow, requests);
  }

  update(update: Update<VirtualHost>): readonly Rejection[] {
    const isThese = ({ name }: { readonly name: string }) => name.startsWith(this.#prefix);
    const resources = update.resources.filter(isThese);
    const kept = new Map(this.#hosts);
    // A refused host exists in another version: the previous one stays in use.
    for (const name of removedNames({ ...update, resources }, this.#hosts.keys())) kept.delete(name);
    const mentioned = new Set([...update.removed, ...[...update.refused, ...resources].map(({ name }) => name)]);
    const clashing = update.isComplete ? [] : [...this.#clashing.values()].filter(({ name }) => !mentioned.has(name));
    const rejections = this.#take(kept, resources, clashing);
    this.#settle(update, resources);
    this.#ready();
    return rejections;
  }

  fetchTimedOut(): void {
    this.#ready();
  }

  /** Called when the route configuration's own virtual hosts have changed. */
  ownChanged(): void {
    if (this.#clashing.size > 0) this.#take(new Map(this.#hosts), [], [...this.#clashing.values()]);
  }

  close(): void {
    this.#isClosed = true;
    this.#pending.abandonAll();
    this.#subscription.close();
    this.#counts.close();
  }

  #ready(): void {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#user.ready();
  }

  /** Puts into use `kept`, and the usable ones of `fresh` and `clashing`. Returns the unusable ones of `fresh`. */
  #take(
    kept: HostsByName,
    fresh: readonly Resource<VirtualHost>[],
    clashing: readonly Resource<VirtualHost>[],
  ): Rejection[] {
    const problems = new Map(
      [...fresh, ...clashing].map(({ name, message }) => [name, this.#user.problemsOf(message)]),
    );
    const usable = [...fresh, ...clashing].filter(({ name }) => problems.get(name) === '');
    const clashes = domainClashes(this.#user.own(), kept, usable);
    for (const [name, domain] of clashes) problems.set(name, `another virtual host has the domain '${domain}'`);
    const rejections = fresh.flatMap(({ name }) => {
      const details = problems.get(name)!;
      return details === '' ? [] : [{ name, details }];
    });
    const isClashing = ({ name }: Resource<VirtualHost>) => clashes.has(name);
    this.#clashing = new Map(usable.filter(isClashing).map((each) => [each.name, each] as const));
    const used = usable.filter((each) => !isClashing(each));
    const next: HostsByName = new Map([...kept, ...used.map((each) => [each.name, each] as const)]);
    if (rejections.length > 0) {
      const details = new Set(rejections.map((each) => each.details));
      logger.warning(`virtual hosts are rejected: ${[...details].join('; ')}`);
    }
    if (!isSame(next, this.#hosts)) this.#use(next);
    return rejections;
  }

  #use(next: HostsByName): void {
    this.#hosts.clear();
    for (const [name, resource] of next) this.#hosts.set(name, resource);
    this.#counts.reloaded();
    this.#user.changed(this.all);
  }

  /** Answers the requests for hosts. */
  #settle({ removed, refused }: Update<VirtualHost>, resources: readonly Resource<VirtualHost>[]): void {
    if (this.#pending.isEmpty) return;
    for (const { name, aliases } of resources) for (const known of [name, ...aliases]) this.#answer(known, true);
    for (const { name } of refused) this.#answer(name, false);
    for (const name of removed) this.#answer(name, false);
  }

  #answer(name: string, exists: boolean): void {
    if (!this.#pending.remove(name)) return;
    // Names invented by clients must not stay in the subscription forever.
    if (!exists && this.#names.delete(name)) this.#subscribeSoon();
    this.#user.settled(name.slice(this.#prefix.length));
  }

  /** Updates the subscription once for all names that change in a turn: there may be many others. */
  #subscribeSoon(): void {
    if (this.#isChanged) return;
    this.#isChanged = true;
    setImmediate(() => {
      this.#isChanged = false;
      if (!this.#isClosed) this.#subscription.setNames(new Set(this.#names));
    });
  }
}

type HostsByName = ReadonlyMap<string, Resource<VirtualHost>>;

function messagesOf(hosts: HostsByName): VirtualHost[] {
  return Array.from(hosts.values(), ({ message }) => message);
}

function isSame(one: HostsByName, other: HostsByName): boolean {
  if (one.size !== other.size) return false;
  for (const [name, { message }] of one) if (other.get(name)?.message !== message) return false;
  return true;
}
