// Loaded into Baton before itself (--import): a network filter that takes no connection, and leaves them open. It is configured by the message
// of the echo filter.

import { EXTENSIONS } from '../../../src/extensions/index.js';
import type { NetworkFilterExtension } from '../../../src/extensions/sdk.js';

const refusing: NetworkFilterExtension = {
  category: 'envoy.filters.network',
  name: 'acme.refusing',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo'],
  isTerminal: true,
  createOnWorker: () => ({ accept: () => undefined }),
};

(EXTENSIONS as NetworkFilterExtension[]).push(refusing);
