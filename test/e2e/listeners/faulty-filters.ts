// Loaded into Baton before itself (--import): a network filter that takes no connection, and leaves them open; it is configured by the message
// of the echo filter. And one that throws whatever happens to its connections, configured by that of direct_response.

import { EXTENSIONS } from '../../../src/extensions/index.js';
import type { NetworkFilterExtension } from '../../../src/extensions/sdk.js';

const refusing: NetworkFilterExtension = {
  category: 'envoy.filters.network',
  name: 'acme.refusing',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo'],
  isTerminal: true,
  createOnWorker: () => ({ accept: () => undefined }),
};

const fail = (): never => {
  throw new Error('a mistake');
};

const failing: NetworkFilterExtension = {
  category: 'envoy.filters.network',
  name: 'acme.failing',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.network.direct_response.v3.Config'],
  isTerminal: true,
  createOnWorker: () => ({
    accept: () => ({
      activeRequests: 0,
      onConnected: fail,
      onData: fail,
      onBlocked: fail,
      onDrained: fail,
      onEnd: fail,
      onReset: fail,
      onFault: fail,
      onDrainEnd: fail,
      onListenerGone: fail,
    }),
  }),
};

(EXTENSIONS as NetworkFilterExtension[]).push(refusing, failing);
