// Configuration sources that the test controls: it sends updates and observes subscriptions.

import { runSync } from '../../src/common/time/next-turn.js';
import type { RefusedResource, Resource, Update } from '../../src/xds/resource.js';
import {
  type ConfigSources,
  type Rejection,
  type ResourceNames,
  type Subscription,
  type SubscriptionRequest,
  stepsOf,
} from '../../src/xds/subscription.js';

/** The non-empty parts of an update. */
export type Delivery = Partial<Omit<Update, 'resources'>> & {
  readonly resources?: readonly (Partial<Resource> & Pick<Resource, 'name' | 'message'>)[];
};

export class FakeSubscription implements Subscription {
  readonly request: SubscriptionRequest;
  names: ResourceNames;
  isClosed = false;

  constructor(request: SubscriptionRequest) {
    this.request = request;
    this.names = request.names;
  }

  setNames(names: ResourceNames): void {
    this.names = names;
  }

  close(): void {
    this.isClosed = true;
  }

  /** Delivers an update, a complete one by default. Returns the rejections. */
  deliver({
    version = '1',
    isComplete = true,
    resources = [],
    refused = [],
    removed = [],
  }: Delivery): readonly Rejection[] {
    const complete = resources.map((resource) => ({ version, aliases: [], sensitive: [], ...resource }));
    const update = { version, isComplete, resources: complete, refused, removed };
    return runSync(stepsOf(this.request.watcher.update(update)));
  }

  timeOut(): void {
    this.request.watcher.fetchTimedOut();
  }
}

export class FakeSources implements ConfigSources {
  readonly subscriptions: FakeSubscription[] = [];

  subscribe<M>(request: SubscriptionRequest<M>): Subscription {
    const subscription = new FakeSubscription(request as SubscriptionRequest);
    this.subscriptions.push(subscription);
    return subscription;
  }

  /** The only open subscription to this name. */
  to(name: string): FakeSubscription {
    const found = this.subscriptions.filter(({ names, isClosed }) => !isClosed && names !== '*' && names.has(name));
    if (found.length !== 1) throw new Error(`${found.length} subscriptions to ${name}`);
    return found[0]!;
  }
}

/** A resource that could not be read. */
export function unreadable(name: string, details: string): RefusedResource {
  return { name, version: '1', details, message: undefined };
}
