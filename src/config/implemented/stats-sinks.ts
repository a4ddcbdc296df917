// Implemented fields of the sinks of stats.

import { ALL, type ImplementedTable } from './table.js';

export const STATS_SINKS: ImplementedTable = {
  'envoy.config.metrics.v3.StatsSink': { name: true, typed_config: true },
  'envoy.config.metrics.v3.StatsdSink': ALL,
  'envoy.config.metrics.v3.DogStatsdSink': ALL,
  'envoy.config.metrics.v3.HystrixSink': ALL,
  'envoy.config.metrics.v3.MetricsServiceConfig': {
    grpc_service: true,
    transport_api_version: ['AUTO', 'V3'],
    report_counters_as_deltas: true,
    emit_tags_as_labels: true,
    histogram_emit_mode: true,
    batch_size: true,
  },
  'envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig': {
    grpc_service: true,
    http_service: true,
    report_counters_as_deltas: true,
    report_histograms_as_deltas: true,
    emit_tags_as_attributes: true,
    use_tag_extracted_name: true,
    prefix: true,
    max_data_points_per_request: true,
  },
  'envoy.extensions.stat_sinks.graphite_statsd.v3.GraphiteStatsdSink': ALL,
};
