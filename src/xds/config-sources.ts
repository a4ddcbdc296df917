// All configuration sources of a server. Nothing is loaded, watched or connected before
// the first subscription.

import { onDemand } from '../common/package/on-demand.js';
import type { ConnectedSources } from './connected-sources.js';
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
    const connect = () => {
      this.#connecting = this.#connect();
      return this.#connecting;
    };
    return subscribeLater(connect, request as SubscriptionRequest, this.#context.failed);
  }

  /** Checks later updates against another bootstrap. */
  bootstrapChanged(): void {
    this.#connected?.bootstrapChanged();
  }

  /** Ends all subscriptions and releases their resources. */
  async close(): Promise<void> {
    await (await this.#connecting?.catch(() => undefined))?.close();
  }

  async #connect(): Promise<ConnectedSources> {
    const { ConnectedSources: Connected } = await this.#load();
    this.#connected ??= new Connected(this.#context);
    return this.#connected;
  }
}
