// Implemented fields of stats sinks.

import { byValue, type ImplementedTable, notImplemented, obeyed, onlyFalse } from './table.js';

const OWN_UNITS = 'histograms are sent in their own units: leave it out';

export const STATS_SINKS: ImplementedTable = {
  'envoy.config.metrics.v3.StatsSink': { name: true, typed_config: true },
  'envoy.config.metrics.v3.StatsdSink': {
    address: true,
    tcp_cluster_name: true,
    prefix: true,
    scale_histogram_units_to_milliseconds: onlyFalse(OWN_UNITS),
  },
  'envoy.config.metrics.v3.DogStatsdSink': {
    address: true,
    prefix: true,
    max_bytes_per_datagram: true,
    scale_histogram_units_to_milliseconds: onlyFalse(OWN_UNITS),
  },
  'envoy.config.metrics.v3.HystrixSink': obeyed('num_buckets'),
  'envoy.config.metrics.v3.MetricsServiceConfig': {
    grpc_service: true,
    transport_api_version: byValue({ AUTO: true, V2: false, V3: true }),
    report_counters_as_deltas: true,
    emit_tags_as_labels: true,
    histogram_emit_mode: byValue({ SUMMARY_AND_HISTOGRAM: true, SUMMARY: true, HISTOGRAM: true }),
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
    ...notImplemented('resource_detectors', 'custom_metric_conversions'),
  },
  'envoy.extensions.stat_sinks.graphite_statsd.v3.GraphiteStatsdSink': {
    address: true,
    prefix: true,
    max_bytes_per_datagram: true,
    scale_histogram_units_to_milliseconds: onlyFalse(OWN_UNITS),
  },
};
