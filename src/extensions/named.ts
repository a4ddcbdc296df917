// Extensions that exist only to be named: a configuration can ask for what Baton does anyway, or for what other rooms read themselves.
// Nothing is built from them.

import { accepted } from '../config/implemented/table.js';
import type { NamedExtension } from './factories.js';

const RAW_BUFFER = {
  name: 'envoy.transport_sockets.raw_buffer',
  typeUrls: ['type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer'],
};

const ONLY_TRACING = accepted(
  'it is about sampling of traces, and tracing is not implemented: no ID is changed for it',
);

export const NAMED: readonly NamedExtension[] = [
  // The engine of all expressions, named or not (common/text/regex.ts).
  {
    category: 'envoy.regex_engines',
    name: 'envoy.regex_engines.google_re2',
    typeUrls: ['type.googleapis.com/envoy.extensions.regex_engines.v3.GoogleRE2'],
  },
  // x-request-id is a random UUID: connection managers make it in any case.
  {
    category: 'envoy.request_id',
    name: 'envoy.request_id.uuid',
    typeUrls: ['type.googleapis.com/envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig'],
    implemented: {
      'envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig': {
        pack_trace_reason: ONLY_TRACING,
        use_request_id_for_trace_sampling: ONLY_TRACING,
      },
    },
  },
  // A limit on connections, which listeners read themselves.
  {
    category: 'envoy.resource_monitors',
    name: 'envoy.resource_monitors.global_downstream_max_connections',
    typeUrls: [
      'type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig',
    ],
  },
  // Another try prefers a host that the request has not been at: retry policies read that it is there, and the router obeys it.
  {
    category: 'envoy.retry_host_predicates',
    name: 'envoy.retry_host_predicates.previous_hosts',
    typeUrls: ['type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate'],
    implemented: { 'envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate': {} },
  },
  // Plain bytes, to clients and to hosts: that is what there is without it, too.
  { category: 'envoy.transport_sockets.downstream', ...RAW_BUFFER },
  { category: 'envoy.transport_sockets.upstream', ...RAW_BUFFER },
  // How a cluster speaks HTTP (typed_extension_protocol_options), which clusters read themselves.
  {
    category: 'envoy.upstream_options',
    name: 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
    typeUrls: ['type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions'],
  },
];
