// envoy.bootstrap.internal_listener: makes internal listeners possible. src/upstream connects to them, src/listener serves them.

import type { NamedExtension } from '../../sdk.js';

const MESSAGE = 'envoy.extensions.bootstrap.internal_listener.v3.InternalListener';

export const internalListener: NamedExtension = {
  category: 'envoy.bootstrap',
  name: 'envoy.bootstrap.internal_listener',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: { [MESSAGE]: { buffer_size_kb: true } },
};
