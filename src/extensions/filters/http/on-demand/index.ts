// envoy.filters.http.on_demand: holds a request without virtual host until the management server has answered for its host.

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
    // Created per request because the position in the chain matters: an earlier filter may answer before the server is asked.
    return { create: (stream) => (stream.missingHost() === undefined ? undefined : new OnDemandFilter(stream)) };
  },
};

/** The filter of one request without a virtual host. */
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
    // First the head: resumed first, more body would be buffered behind it and might exceed the limit.
    this.#stream.continueWithNewRoute();
    this.#stream.resumeRequest();
  }

  onDestroy(): void {
    this.#awaited?.hosts.cancel(this.#awaited.host, this);
    this.#awaited = undefined;
  }
}
