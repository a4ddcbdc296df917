// envoy.filters.http.on_demand: requests whose virtual host is not there yet wait until the management server has been asked.

import type { OnDemand } from '../../../../config/generated/api.js';
import {
  HeadersStatus,
  type HostWaiter,
  type HttpFilter,
  type HttpFilterExtension,
  type HttpFilterFactory,
  type MissingHost,
  notImplemented,
  type StreamControl,
} from '../../../sdk.js';

const TYPE = 'envoy.extensions.filters.http.on_demand.v3.OnDemand';

export const onDemand: HttpFilterExtension<OnDemand> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.on_demand',
  typeUrls: [`type.googleapis.com/${TYPE}`],
  implemented: {
    [TYPE]: {
      ...notImplemented('odcds'),
    },
  },
  createOnWorker(): HttpFilterFactory {
    // Its place in the chain counts: those before it may answer without that anybody is asked.
    return { create: (stream) => (stream.missingHost() === undefined ? undefined : new OnDemandFilter(stream)) };
  },
};

/** One a request without a virtual host. */
class OnDemandFilter implements HttpFilter, HostWaiter {
  readonly #stream: StreamControl;
  #awaited: MissingHost | undefined;

  constructor(stream: StreamControl) {
    this.#stream = stream;
  }

  decodeHeaders(): HeadersStatus {
    const missing = this.#stream.missingHost();
    if (missing === undefined) return HeadersStatus.Continue;
    missing.hosts.request(missing.host, this);
    this.#awaited = missing;
    this.#stream.pauseRequest();
    return HeadersStatus.StopIteration;
  }

  hostSettled(): void {
    this.#awaited = undefined;
    // First the head goes on: what came with it would be held behind it, and might be more than may be held.
    this.#stream.continueWithNewRoute();
    this.#stream.resumeRequest();
  }

  onDestroy(): void {
    this.#awaited?.hosts.cancel(this.#awaited.host, this);
    this.#awaited = undefined;
  }
}
