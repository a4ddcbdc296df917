// The virtual hosts that a source adds to one route configuration (VHDS): those that it sends of itself, and those that
// requests on the workers ask for. They are named `<route configuration>/<host>`.

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
  /** Everything that is wrong with this one by itself; ''. */
  problemsOf(host: VirtualHost): string;
  /** Those that the route configuration has itself. */
  own(): readonly VirtualHost[];
  /** Virtual hosts have come or gone: these are all. */
  changed(hosts: readonly VirtualHost[]): void;
  /** The first have come, or will not come for now. Called once at most. */
  ready(): void;
  /** It is known of this host whether it exists; what there is of it, changed() has told. */
  settled(host: string): void;
}

export class VirtualHosts implements Watcher<VirtualHost> {
  /** vhds.config_source. */
  readonly source: ConfigSource;
  readonly #user: VirtualHostsUser;
  readonly #prefix: string;
  readonly #counts: ReloadCounts;
  readonly #hosts = new Map<string, Resource<VirtualHost>>();
  /** Refused because others have their domains: used when these are gone. */
  #clashing: HostsByName = new Map();
  readonly #subscription: Subscription;
  #isReady = false;
  /** Everything, and by name hosts that exist or have existed, and those that are asked for. */
  readonly #names = new Set<string>(['*']);
  /** They differ from those that the source was asked for. */
  #isChanged = false;
  #isClosed = false;
  /** What requests wait for, by names of resources. */
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
    const prefix = `${statPrefix}vhds.${routes}.`;
    this.#counts = new ReloadCounts(context.store, prefix, AwaitedHostStats);
    this.#pending = new PendingHosts(this.#prefix, this.#counts.besides, (name) => this.#answer(name, false));
    this.#subscription = context.sources.subscribe<VirtualHost>({
      source,
      type: 'virtual-host',
      names: new Set(this.#names),
      statPrefix: prefix,
      watcher: this,
    });
  }

  /** The first have come, or will not come for now. */
  get isReady(): boolean {
    return this.#isReady;
  }

  get resources(): Iterable<Resource<VirtualHost>> {
    return this.#hosts.values();
  }

  get all(): readonly VirtualHost[] {
    return messagesOf(this.#hosts);
  }

  /** Asks for a host, in lower case, for a worker; the answer is settled(). */
  ask(host: string, worker: number): void {
    const name = this.#prefix + host;
    if (this.#pending.join(name, worker)) return;
    // What is subscribed to is as it is: the source tells when it changes.
    if (this.#names.has(name)) return this.#user.settled(host);
    this.#pending.add(name, worker);
    this.#names.add(name);
    this.#subscribeSoon();
  }

  /** The worker does not wait for it any more: when no other does, it is not asked for any longer. */
  forget(host: string, worker: number): void {
    const name = this.#prefix + host;
    if (this.#pending.leave(name, worker) && this.#names.delete(name)) this.#subscribeSoon();
  }

  countDismissed(requests: number): void {
    this.#counts.besides.add(AwaitedHostStats.at.requests_overflow, requests);
  }

  update(update: Update<VirtualHost>): readonly Rejection[] {
    const ofThese = ({ name }: { readonly name: string }) => name.startsWith(this.#prefix);
    const resources = update.resources.filter(ofThese);
    const kept = new Map(this.#hosts);
    // What is refused, now or for what it says, is there in another version: the one before it stays.
    for (const name of removedNames({ ...update, resources }, this.#hosts.keys())) kept.delete(name);
    const told = new Set([...update.removed, ...[...update.refused, ...resources].map(({ name }) => name)]);
    const clashing = update.isComplete ? [] : [...this.#clashing.values()].filter(({ name }) => !told.has(name));
    const rejections = this.#take(kept, resources, clashing);
    this.#settle(update, resources);
    this.#ready();
    return rejections;
  }

  fetchTimedOut(): void {
    this.#ready();
  }

  /** The route configuration has other virtual hosts of its own. */
  ownChanged(): void {
    if (this.#clashing.size > 0) this.#take(new Map(this.#hosts), [], [...this.#clashing.values()]);
  }

  close(): void {
    this.#isClosed = true;
    this.#pending.giveAllUp();
    this.#subscription.close();
    this.#counts.close();
  }

  #ready(): void {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#user.ready();
  }

  /**
   * Makes `kept` and those of `fresh`, and of `clashing` before, that can be used the hosts that there are. Returns the others of
   * `fresh`.
   */
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

  /** Answers what has been asked for. */
  #settle({ removed, refused }: Update<VirtualHost>, resources: readonly Resource<VirtualHost>[]): void {
    if (this.#pending.isEmpty) return;
    for (const { name, aliases } of resources) for (const known of [name, ...aliases]) this.#answer(known, true);
    for (const { name } of refused) this.#answer(name, false);
    for (const name of removed) this.#answer(name, false);
  }

  #answer(name: string, exists: boolean): void {
    if (!this.#pending.remove(name)) return;
    // Names that clients make up are not asked for for ever.
    if (!exists && this.#names.delete(name)) this.#subscribeSoon();
    this.#user.settled(name.slice(this.#prefix.length));
  }

  /** Once for all names that come and go in a turn: there may be many others. */
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
