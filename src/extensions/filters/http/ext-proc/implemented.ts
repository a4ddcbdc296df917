// The implemented fields of the ext_proc filter.

import { accepted, byValue, type ImplementedTable, obeyed, onlyFalse, refused } from '../../../sdk.js';
import { MUTATION_RULES } from '../../common/mutation-rules.js';

const NO_TYPED = refused('streams have no typed metadata: use untyped');
const NO_SPANS = onlyFalse('calls of the filter have no spans: leave it out');
const NO_MODIFIERS = refused('messages to the processor are not modified: leave it out');

export const EXT_PROC_FIELDS = {
  'envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor': {
    ...obeyed(
      'grpc_service',
      'failure_mode_allow',
      'processing_mode',
      'message_timeout',
      'stat_prefix',
      'mutation_rules',
      'max_message_timeout',
      'forward_rules',
      'disable_immediate_response',
      'metadata_options',
      'disable_clear_route_cache',
      'status_on_error',
    ),
    route_cache_action: byValue({ DEFAULT: true, CLEAR: true, RETAIN: true }),
    http_service: true,
    request_attributes: true,
    response_attributes: true,
    filter_metadata: accepted('only access loggers in C++ read it'),
    allow_mode_override: true,
    allowed_override_modes: true,
    observability_mode: true,
    deferred_close_timeout: true,
    send_body_without_waiting_for_header_response: true,
    processing_request_modifier: NO_MODIFIERS,
    on_processing_response: refused('answers are not passed to extensions: leave it out'),
    allow_content_length_header: onlyFalse('the filter keeps the content-length right: leave it out'),
    emit_client_span: NO_SPANS,
  },
  'envoy.extensions.filters.http.ext_proc.v3.ExtProcHttpService': { http_service: true },
  'envoy.extensions.filters.http.ext_proc.v3.MetadataOptions': {
    forwarding_namespaces: true,
    receiving_namespaces: true,
    cluster_metadata_forwarding_namespaces: refused('processors get no metadata of clusters'),
  },
  'envoy.extensions.filters.http.ext_proc.v3.MetadataOptions.MetadataNamespaces': { untyped: true, typed: NO_TYPED },
  'envoy.extensions.filters.http.ext_proc.v3.HeaderForwardingRules': obeyed('allowed_headers', 'disallowed_headers'),
  'envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute': obeyed('disabled', 'overrides'),
  'envoy.extensions.filters.http.ext_proc.v3.ExtProcOverrides': {
    ...obeyed('processing_mode', 'grpc_service', 'metadata_options', 'grpc_initial_metadata', 'failure_mode_allow'),
    async_mode: onlyFalse('it has no effect in Envoy: leave it out'),
    request_attributes: true,
    response_attributes: true,
    processing_request_modifier: NO_MODIFIERS,
    emit_client_span: NO_SPANS,
  },
  'envoy.extensions.filters.http.ext_proc.v3.ProcessingMode': {
    request_header_mode: byValue({ DEFAULT: true, SEND: true, SKIP: true }),
    response_header_mode: byValue({ DEFAULT: true, SEND: true, SKIP: true }),
    request_body_mode: byValue({
      NONE: true,
      STREAMED: true,
      BUFFERED: true,
      BUFFERED_PARTIAL: true,
      FULL_DUPLEX_STREAMED: true,
      GRPC: false,
    }),
    response_body_mode: byValue({
      NONE: true,
      STREAMED: true,
      BUFFERED: true,
      BUFFERED_PARTIAL: true,
      FULL_DUPLEX_STREAMED: true,
      GRPC: false,
    }),
    request_trailer_mode: byValue({ DEFAULT: true, SEND: true, SKIP: true }),
    response_trailer_mode: byValue({ DEFAULT: true, SEND: true, SKIP: true }),
  },
  ...MUTATION_RULES,
} satisfies ImplementedTable;
