// envoy.transport_sockets.internal_upstream: connections to internal listeners bring metadata and filter state with them.
//
// src/upstream/connections does it.

import type { InternalUpstreamTransport } from '../../../config/generated/api.js';
import type { NamedExtension } from '../../sdk.js';

const MESSAGE = 'envoy.extensions.transport_sockets.internal_upstream.v3.InternalUpstreamTransport';

export const internalUpstream: NamedExtension = {
  category: 'envoy.transport_sockets.upstream',
  name: 'envoy.transport_sockets.internal_upstream',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: {
    [MESSAGE]: { passthrough_metadata: true, transport_socket: true },
    [`${MESSAGE}.MetadataValueSource`]: { kind: true, name: true },
  },
  validate(config, report) {
    const { passthrough_metadata: sources = [], transport_socket: inner } = config as InternalUpstreamTransport;
    if (inner?.typed_config?.['@type'].endsWith(`/${MESSAGE}`))
      report('transport_socket', 'a connection brings one set of values: merge the two');
    for (const [index, { kind = {} }] of sources.entries()) {
      // In Envoy's words.
      for (const type of ['request', 'route'] as const)
        if (kind[type] !== undefined)
          report(`passthrough_metadata[${index}].kind.${type}`, 'metadata type is not supported: use host or cluster');
    }
  },
};
