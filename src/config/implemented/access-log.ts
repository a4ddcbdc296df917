// Implemented fields of access loggers and their formats.

import { type ImplementedTable, refused } from './table.js';

export const ACCESS_LOG: ImplementedTable = {
  'envoy.config.accesslog.v3.AccessLog': {
    name: true,
    typed_config: true,
    filter: refused('log all requests, and filter where the lines are read'),
  },
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
  },
};
