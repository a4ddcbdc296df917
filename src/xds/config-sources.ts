// All sources of configuration of a server: each subscription goes to the file or the management server that it names. Nothing is
// loaded, watched or connected until somebody subscribes.

import { BatonError } from '../common/errors.js';
import type { Bootstrap, ConfigSource } from '../config/generated/api.js';
import type { PrimaryCalls } from '../extensions/factories.js';
import type { ClusterHosts } from '../grpc/cluster-hosts.js';
import type { StatsStore } from '../stats/store.js';
import type { ConfigSources, Subscription, SubscriptionRequest } from './subscription.js';

/** What subscriptions need of the server that has them. */
export interface SourcesHost {
  /** With the node as the command line has changed it. */
  readonly bootstrap: Bootstrap;
  readonly store: StatsStore;
  readonly calls: PrimaryCalls;
  /** For gRPC channels to clusters. */
  readonly hosts: ClusterHosts;
  /** What should not happen, and was caught. */
  readonly failed: (what: string, error: unknown) => void;
}

export class ServerConfigSources implements ConfigSources {
  readonly #subscriptions = new Set<Subscription>();

  constructor(readonly host: SourcesHost) {}

  subscribe<M>(request: SubscriptionRequest<M>): Subscription {
    const inner = this.#begin(request as SubscriptionRequest);
    const subscription: Subscription = {
      setNames: (names) => inner.setNames(names),
      close: () => {
        if (this.#subscriptions.delete(subscription)) inner.close();
      },
    };
    this.#subscriptions.add(subscription);
    return subscription;
  }

  /** Ends what is left of subscriptions. */
  close(): void {
    for (const subscription of this.#subscriptions) subscription.close();
  }

  #begin({ source }: SubscriptionRequest): Subscription {
    throw new BatonError('INTERNAL', `a source of configuration that the loader refuses: ${kindOf(source)}`);
  }
}

function kindOf({ path_config_source: file, api_config_source: api, ads, self }: ConfigSource): string {
  if (file !== undefined) return 'path_config_source';
  if (api !== undefined) return `api_config_source ${api.api_type ?? ''}`;
  return ads !== undefined ? 'ads' : self !== undefined ? 'self' : 'none';
}
