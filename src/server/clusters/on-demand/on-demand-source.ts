// A source of clusters that are requested one by one (ODCDS): the names that are subscribed, and the clusters that it has delivered.

import { messageOf } from '../../../common/errors/errors.js';
import { shownName } from '../../../common/text/shown.js';
import type { Cluster, ConfigSource } from '../../../config/generated/api.js';
import { messageWithoutSecrets } from '../../../config/text/secrets.js';
import { getLogger } from '../../../log/logger.js';
import type { Update } from '../../../xds/resource.js';
import type { ConfigSources, Rejection, StepwiseUpdate, Subscription, Watcher } from '../../../xds/subscription.js';
import type { ClusterSet } from '../cluster-set.js';

const logger = getLogger('upstream');

/** Stats prefix, as in Envoy. */
export const ON_DEMAND_PREFIX = 'cluster_manager.odcds.';

/** Limit of the names that the server has not answered, since clients choose them. A further one replaces the oldest. */
const MAX_UNANSWERED = 1024;
/** Limit of the clusters that a source delivers on demand. */
const MAX_DISCOVERED = 16_384;

const NAMES_PER_MS = 1000;

/** Clusters changed without yielding: some milliseconds of work. */
const CHANGES_PER_STEP = 128;

export interface OnDemandUser {
  /** Called when the server has answered for a cluster; `isThere`: it has one that is usable, which may still be warming. */
  answered(name: string, isThere: boolean): void;
  /** Called when a name is no longer requested because there are too many. */
  forgotten(name: string): void;
}

export class OnDemandSource implements Watcher<Cluster> {
  readonly #clusters: ClusterSet;
  readonly #user: OnDemandUser;
  /** Subscribed names that the server has not answered, oldest first. */
  readonly #unanswered = new Set<string>();
  readonly #discovered = new Set<string>();
  /** Names that the server does not have and that are still subscribed. */
  readonly #missing = new Set<string>();
  readonly #subscription: Subscription;
  #timer: NodeJS.Timeout | undefined;

  constructor(source: ConfigSource, name: string, clusters: ClusterSet, sources: ConfigSources, user: OnDemandUser) {
    this.#clusters = clusters;
    this.#user = user;
    this.#unanswered.add(name);
    this.#subscription = sources.subscribe<Cluster>({
      source,
      type: 'cluster',
      names: this.#names,
      statPrefix: ON_DEMAND_PREFIX,
      watcher: this,
    });
  }

  /** No request waits for it. */
  get isAnswered(): boolean {
    return this.#unanswered.size === 0;
  }

  /** It has neither delivered a cluster nor to answer for one. */
  get isUnused(): boolean {
    return this.isAnswered && this.#discovered.size === 0;
  }

  /** Requests a cluster that does not exist. Returns false if the source has delivered as many as it may. */
  request(name: string): boolean {
    if (this.#unanswered.has(name) || (this.#discovered.has(name) && this.#clusters.warming.has(name))) return true;
    // The server has answered, or another source has removed it: the server answers a new subscription only.
    if (this.#discovered.delete(name) || this.#missing.has(name)) this.#subscribe();
    if (this.#discovered.size >= MAX_DISCOVERED) return false;
    if (this.#unanswered.size >= MAX_UNANSWERED) this.#forgetOldest();
    this.#unanswered.add(name);
    this.#schedule();
    return true;
  }

  *update({ refused, removed, resources }: Update<Cluster>): StepwiseUpdate {
    const rejections: Rejection[] = [];
    const answers = new Map<string, boolean>();
    let changes = 0;
    for (const resource of resources) {
      const { message, name } = resource;
      try {
        this.#clusters.setDynamic(resource);
        this.#unanswered.delete(name);
        this.#discovered.add(name);
        answers.set(name, true);
      } catch (error) {
        rejections.push({ name, details: messageWithoutSecrets(messageOf(error), message) });
        answers.set(name, false);
      }
      if (++changes % CHANGES_PER_STEP === 0) yield;
    }
    for (const { name } of refused) answers.set(name, false);
    for (const name of removed) {
      if (this.#discovered.delete(name)) {
        this.#missing.add(name);
        if (this.#clusters.removeDynamic(name)) logger.debug(`odcds: remove cluster '${shownName(name)}'`);
      }
      answers.set(name, false);
      if (++changes % CHANGES_PER_STEP === 0) yield;
    }
    for (const [name, isThere] of answers) {
      // The next request for a missing cluster subscribes again, so that the server answers it.
      if (!isThere && this.#unanswered.delete(name)) this.#missing.add(name);
    }
    this.#schedule();
    for (const [name, isThere] of answers) this.#user.answered(name, isThere);
    return rejections;
  }

  fetchTimedOut(): void {}

  /** Closes it, and removes its clusters. */
  remove(): void {
    this.close();
    for (const name of this.#discovered) this.#clusters.removeDynamic(name);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#subscription.close();
  }

  /** Sends changed names, a while after the first change: clients cause them, and each costs as much as there are names. */
  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#subscribe();
    }, this.#discovered.size / NAMES_PER_MS);
  }

  #subscribe(): void {
    this.#missing.clear();
    this.#subscription.setNames(this.#names);
  }

  get #names(): ReadonlySet<string> {
    return new Set([...this.#discovered, ...this.#unanswered]);
  }

  #forgetOldest(): void {
    for (const name of this.#unanswered) {
      this.#unanswered.delete(name);
      return this.#user.forgotten(name);
    }
  }
}
