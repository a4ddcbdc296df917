// envoy.upstreams.http: how a cluster speaks HTTP (typed_extension_protocol_options). Clusters read it themselves.

import type { UpstreamOptionsExtension } from '../../sdk.js';

export const httpProtocolOptions: UpstreamOptionsExtension = {
  category: 'envoy.upstream_options',
  name: 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
  typeUrls: ['type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions'],
};
