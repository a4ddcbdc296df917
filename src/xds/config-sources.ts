// All configuration sources of a server. Nothing is loaded, watched or connected before
// the first subscription.

import { onDemand } from '../common/package/on-demand.js';
import type { ConnectedSources } from './connected-sources.js';
import type { ResourceReader } from './resource-reader.js';
import type { SourcesContext } from './sources-context.js';
import { subscribeLater } from './subscribe-later.js';
import type { ConfigSources, Subscription, SubscriptionRequest } from './subscription.js';

export class ServerConfigSources implements ConfigSources {
  readonly #context: SourcesContext;
  readonly #load = onDemand(() => import('./connected-sources.js'));
  /** Undefined before the first subscription. */
  #connecting: Promise<ConnectedSources> | undefined;
  #connected: ConnectedSources | undefined;

  constructor(context: SourcesContext) {
    this.#context = context;
  }

  subscribe<M>(request: SubscriptionRequest<M>): Subscription {
    return subscribeLater(() => this.#connect(), request as SubscriptionRequest, this.#context.failed);
  }

  /** Returns a reader for resources that do not come from a subscription. */
  async reader(): Promise<ResourceReader> {
    return (await this.#connect()).reader();
  }

  /** Checks later updates against another bootstrap. */
  bootstrapChanged(): void {
    this.#connected?.bootstrapChanged();
  }

  /** Ends all subscriptions and releases their resources. */
  async close(): Promise<void> {
    await (await this.#connecting?.catch(() => undefined))?.close();
  }

  #connect(): Promise<ConnectedSources> {
    this.#connecting = this.#create();
    return this.#connecting;
  }

  async #create(): Promise<ConnectedSources> {
    const { ConnectedSources: Connected } = await this.#load();
    this.#connected ??= new Connected(this.#context);
    return this.#connected;
  }
}
