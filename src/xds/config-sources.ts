// All sources of configuration of a server, as its parts subscribe to them. Nothing is loaded, watched or connected until
// somebody does.

import type { ConnectedSources } from './connected-sources.js';
import type { SourcesContext } from './sources-context.js';
import { subscribeLater } from './subscribe-later.js';
import type { ConfigSources, Subscription, SubscriptionRequest } from './subscription.js';

export class ServerConfigSources implements ConfigSources {
  readonly #context: SourcesContext;
  #connected: Promise<ConnectedSources> | undefined;

  constructor(context: SourcesContext) {
    this.#context = context;
  }

  subscribe<M>(request: SubscriptionRequest<M>): Subscription {
    this.#connected ??= this.#load();
    return subscribeLater(this.#connected, request as SubscriptionRequest, this.#context.failed);
  }

  /** What is read from now on is checked against another bootstrap. */
  bootstrapChanged(): void {
    this.#connected?.then(
      (connected) => connected.bootstrapChanged(),
      () => {},
    );
  }

  /** Ends what is left of subscriptions, and what they needed. */
  async close(): Promise<void> {
    await (await this.#connected?.catch(() => undefined))?.close();
  }

  async #load(): Promise<ConnectedSources> {
    const { ConnectedSources: Connected } = await import('./connected-sources.js');
    return new Connected(this.#context);
  }
}
