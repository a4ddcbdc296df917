// envoy.transport_sockets.raw_buffer: plain bytes, to clients and to hosts. That is what there is without it, too: nothing is built from it.

import type { TransportSocketExtension } from '../../sdk.js';

const RAW_BUFFER = {
  name: 'envoy.transport_sockets.raw_buffer',
  typeUrls: ['type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer'],
};

export const downstreamRawBuffer: TransportSocketExtension = {
  category: 'envoy.transport_sockets.downstream',
  ...RAW_BUFFER,
};

export const upstreamRawBuffer: TransportSocketExtension = {
  category: 'envoy.transport_sockets.upstream',
  ...RAW_BUFFER,
};
