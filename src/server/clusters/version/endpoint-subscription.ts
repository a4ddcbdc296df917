// The endpoint assignment of one cluster from EDS. The subscription lasts while any version of the cluster uses it; a new version
// receives the current assignment at once.

import { shownName } from '../../../common/text/shown.js';
import { durationMs } from '../../../common/time/duration.js';
import type { ClusterLoadAssignment, ConfigSource } from '../../../config/generated/api.js';
import { Timer, type Timers } from '../../../io/time/timing-wheel.js';
import { getLogger } from '../../../log/logger.js';
import { ClusterStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';
import { accepted, type DynamicState, REQUESTED, refused, shown } from '../../../xds/dynamic-state.js';
import type { Resource, Update } from '../../../xds/resource.js';
import type { ConfigSources, Rejection, Subscription, Watcher } from '../../../xds/subscription.js';
import type { ClusterResources } from './cluster-resources.js';

const logger = getLogger('upstream');

/** The subscriptions of all clusters. Versions of a cluster with the same source and name share one. */
export class EndpointSubscriptions {
  readonly #timers: Timers;
  readonly #sources: () => ConfigSources;
  readonly #open = new Map<string, EndpointSubscription>();

  constructor(timers: Timers, sources: () => ConfigSources) {
    this.#timers = timers;
    this.#sources = sources;
  }

  to(source: ConfigSource, serviceName: string, { scope, stats }: ClusterResources): EndpointSubscription {
    const key = JSON.stringify([scope.prefix, serviceName, source]);
    let subscription = this.#open.get(key);
    if (subscription === undefined) {
      subscription = new EndpointSubscription(source, serviceName, {
        ...{ timers: this.#timers, sources: this.#sources(), stats, statPrefix: scope.prefix },
        ended: () => this.#open.delete(key),
      });
      this.#open.set(key, subscription);
    }
    return subscription;
  }
}

export interface EndpointUser {
  /** Called with a new assignment, or with an empty one when the last one has expired. */
  assigned(assignment: ClusterLoadAssignment): void;
  /** Called when there is no assignment and none is awaited any more. */
  unassigned(): void;
}

export interface EndpointSubscriptionContext {
  readonly sources: ConfigSources;
  readonly timers: Timers;
  /** Stats of the cluster. */
  readonly stats: Scope;
  readonly statPrefix: string;
  /** Called when the last user is gone and the subscription is closed. */
  ended(): void;
}

export class EndpointSubscription implements Watcher<ClusterLoadAssignment> {
  readonly #context: EndpointSubscriptionContext;
  readonly #serviceName: string;
  readonly #subscription: Subscription;
  readonly #users = new Set<EndpointUser>();
  #resource: Resource<ClusterLoadAssignment> | undefined;
  #state = REQUESTED;
  #isStale = false;
  #isAnswered = false;
  #staleTimer: Timer<EndpointSubscription> | undefined;

  constructor(source: ConfigSource, serviceName: string, context: EndpointSubscriptionContext) {
    this.#context = context;
    this.#serviceName = serviceName;
    this.#subscription = context.sources.subscribe<ClusterLoadAssignment>({
      source,
      type: 'endpoints',
      names: new Set([serviceName]),
      statPrefix: context.statPrefix,
      watcher: this,
    });
  }

  get state(): DynamicState {
    return this.#state;
  }

  /** Adds a user, which is notified of the current assignment and all later ones. */
  add(user: EndpointUser): void {
    this.#users.add(user);
    if (this.#resource !== undefined) user.assigned(this.#isStale ? EMPTY : this.#resource.message);
    else if (this.#isAnswered) user.unassigned();
  }

  /** Removes a user. Closes the subscription with the last one. */
  remove(user: EndpointUser): void {
    if (!this.#users.delete(user) || this.#users.size > 0) return;
    this.#subscription.close();
    if (this.#staleTimer !== undefined) this.#context.timers.cancel(this.#staleTimer);
    this.#context.ended();
  }

  update(update: Update<ClusterLoadAssignment>): readonly Rejection[] {
    this.#isAnswered = true;
    const isThis = ({ name }: { readonly name: string }) => name === this.#serviceName;
    const resource = update.resources.find(isThis);
    if (resource !== undefined) {
      this.#take(resource);
      return [];
    }
    // The last assignment stays in use if the new one is missing, refused or removed.
    logger.debug(`no assignment of endpoints for '${shownName(this.#serviceName)}' in an update`);
    const refusal = update.refused.find(isThis);
    if (refusal !== undefined) this.#state = refused(this.#state, refusal);
    if (update.resources.length + update.refused.length === 0)
      this.#context.stats.increment(ClusterStats.at.update_empty);
    if (this.#resource === undefined) for (const user of [...this.#users]) user.unassigned();
    return [];
  }

  fetchTimedOut(): void {
    this.#isAnswered = true;
    if (this.#resource === undefined) for (const user of [...this.#users]) user.unassigned();
  }

  /** Called when no assignment has arrived within endpoint_stale_after: the hosts are no longer used. */
  expire(): void {
    this.#isStale = true;
    for (const user of [...this.#users]) user.assigned(EMPTY);
    this.#context.stats.increment(ClusterStats.at.assignment_stale);
  }

  #take(resource: Resource<ClusterLoadAssignment>): void {
    const isSame = this.#resource?.message === resource.message && !this.#isStale;
    this.#resource = resource;
    this.#state = accepted(resource);
    // Registers the sensitive parts: dumps show parts of the message.
    shown(resource.message, resource.sensitive);
    this.#isStale = false;
    const staleAfter = resource.message.policy?.endpoint_stale_after;
    const staleMs = durationMs(staleAfter, 0);
    if (staleMs > 0) {
      this.#context.stats.increment(ClusterStats.at.assignment_timeout_received);
      this.#staleTimer ??= new Timer<EndpointSubscription>(this, expire);
      this.#context.timers.reschedule(this.#staleTimer, staleMs);
    } else if (this.#staleTimer !== undefined) {
      this.#context.timers.cancel(this.#staleTimer);
    }
    if (isSame) this.#context.stats.increment(ClusterStats.at.update_no_rebuild);
    else for (const user of [...this.#users]) user.assigned(resource.message);
  }
}

function expire(subscription: EndpointSubscription): void {
  subscription.expire();
}

const EMPTY: ClusterLoadAssignment = {};
