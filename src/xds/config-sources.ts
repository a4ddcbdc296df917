// All sources of configuration of a server, as its parts subscribe to them. Nothing is loaded, watched or connected until
// somebody does.

import type { ConnectedSources } from './connected-sources.js';
import type { SourcesHost } from './sources-host.js';
import { subscribeLater } from './subscribe-later.js';
import type { ConfigSources, Subscription, SubscriptionRequest } from './subscription.js';

export class ServerConfigSources implements ConfigSources {
  readonly #host: SourcesHost;
  #connected: Promise<ConnectedSources> | undefined;

  constructor(host: SourcesHost) {
    this.#host = host;
  }

  subscribe<M>(request: SubscriptionRequest<M>): Subscription {
    this.#connected ??= this.#load();
    return subscribeLater(this.#connected, request as SubscriptionRequest, this.#host.failed);
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
    return new Connected(this.#host);
  }
}
