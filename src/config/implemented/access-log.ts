// Implemented fields of access loggers and their formats.

import { ALL, accepted, type ImplementedTable, refused } from './table.js';

export const ACCESS_LOG: ImplementedTable = {
  'envoy.config.accesslog.v3.AccessLog': {
    name: true,
    typed_config: true,
    filter: true,
  },
  'envoy.config.accesslog.v3.AccessLogFilter': {
    status_code_filter: true,
    duration_filter: true,
    not_health_check_filter: true,
    runtime_filter: true,
    and_filter: true,
    or_filter: true,
    header_filter: true,
    response_flag_filter: true,
    grpc_status_filter: true,
    log_type_filter: true,
    traceable_filter: refused('tracing is not implemented, so no request is traced'),
    metadata_filter: refused('streams have no dynamic metadata; header_filter finds what a header says'),
    extension_filter: refused(
      'there is no such extension; and_filter and or_filter combine the filters that there are',
    ),
  },
  'envoy.config.accesslog.v3.StatusCodeFilter': ALL,
  'envoy.config.accesslog.v3.DurationFilter': ALL,
  'envoy.config.accesslog.v3.ComparisonFilter': ALL,
  'envoy.config.accesslog.v3.RuntimeFilter': ALL,
  'envoy.config.accesslog.v3.AndFilter': ALL,
  'envoy.config.accesslog.v3.OrFilter': ALL,
  'envoy.config.accesslog.v3.HeaderFilter': ALL,
  'envoy.config.accesslog.v3.ResponseFlagFilter': ALL,
  'envoy.config.accesslog.v3.GrpcStatusFilter': ALL,
  'envoy.config.accesslog.v3.LogTypeFilter': ALL,
  'envoy.extensions.access_loggers.file.v3.FileAccessLog': {
    path: true,
    format: true,
    json_format: true,
    typed_json_format: true,
    log_format: true,
  },
  'envoy.extensions.access_loggers.stream.v3.StdoutAccessLog': { log_format: true },
  'envoy.extensions.access_loggers.stream.v3.StderrAccessLog': { log_format: true },
  'envoy.config.core.v3.SubstitutionFormatString': {
    text_format: true,
    json_format: true,
    text_format_source: true,
    omit_empty_values: true,
    content_type: true,
    json_format_options: accepted('its only field makes no difference'),
    formatters: refused('Baton has the operators of formats that it lists, and no others'),
  },
  'envoy.config.core.v3.JsonFormatOptions': { sort_properties: accepted('properties are sorted in any case') },
};
