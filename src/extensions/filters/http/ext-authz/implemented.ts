// The implemented fields of the ext_authz filter.

import { byValue, type ImplementedTable, obeyed, onlyFalse, refused } from '../../../sdk.js';
import { MUTATION_RULES } from '../../common/mutation-rules.js';

const NO_STATS = 'the calls of the filter are not measured: the stats of its cluster have their times and bytes';

export const EXT_AUTHZ_FIELDS = {
  'envoy.extensions.filters.http.ext_authz.v3.ExtAuthz': {
    http_service: true,
    grpc_service: true,
    transport_api_version: byValue({ AUTO: true, V2: false, V3: true }),
    failure_mode_allow: true,
    failure_mode_allow_header_add: true,
    with_request_body: true,
    clear_route_cache: true,
    clear_route_cache_headers: true,
    status_on_error: true,
    validate_mutations: true,
    metadata_context_namespaces: true,
    typed_metadata_context_namespaces: refused('filters set no typed metadata: use metadata_context_namespaces'),
    route_metadata_context_namespaces: true,
    route_typed_metadata_context_namespaces: refused(
      'routes have no typed metadata: use route_metadata_context_namespaces',
    ),
    filter_enabled: true,
    filter_enabled_metadata: true,
    deny_at_disable: true,
    include_peer_certificate: true,
    stat_prefix: true,
    bootstrap_metadata_labels_key: true,
    allowed_headers: true,
    disallowed_headers: true,
    include_tls_session: true,
    charge_cluster_response_stats: true,
    encode_raw_headers: true,
    decoder_header_mutation_rules: true,
    enable_dynamic_metadata_ingestion: true,
    filter_metadata: refused(NO_STATS),
    emit_filter_state_stats: onlyFalse(NO_STATS),
    max_denied_response_body_bytes: true,
    enforce_response_header_limits: onlyFalse(
      'responses of the service have the limits of all responses: leave it out',
    ),
    shadow_mode: true,
    emit_client_span: onlyFalse('calls of the filter have no spans: leave it out'),
  },
  'envoy.extensions.filters.http.ext_authz.v3.BufferSettings': obeyed(
    'max_request_bytes',
    'allow_partial_message',
    'pack_as_bytes',
  ),
  'envoy.extensions.filters.http.ext_authz.v3.HttpService': {
    ...obeyed('server_uri', 'path_prefix', 'path_override', 'authorization_request', 'authorization_response'),
    retry_policy: true,
  },
  'envoy.extensions.filters.http.ext_authz.v3.AuthorizationRequest': { allowed_headers: true, headers_to_add: true },
  'envoy.extensions.filters.http.ext_authz.v3.AuthorizationResponse': obeyed(
    'allowed_upstream_headers',
    'allowed_upstream_headers_to_append',
    'allowed_client_headers',
    'allowed_client_headers_on_success',
    'dynamic_metadata_from_headers',
  ),
  'envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute': { disabled: true, check_settings: true },
  'envoy.extensions.filters.http.ext_authz.v3.CheckSettings': {
    ...obeyed(
      'context_extensions',
      'disable_request_body_buffering',
      'with_request_body',
      'grpc_service',
      'http_service',
    ),
    emit_client_span: onlyFalse('calls of the filter have no spans: leave it out'),
  },
  ...MUTATION_RULES,
} satisfies ImplementedTable;
