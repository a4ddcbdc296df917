// Fields that Envoy has added to messages since the release that @grpc/grpc-js-xds ships.

/** Proto text of the fields by message; a field in a oneof that the message has joins it. */
export const ADDITIONS = {
  'envoy.config.bootstrap.v3.Admin': 'repeated envoy.type.matcher.v3.StringMatcher allow_paths = 7;',
  'envoy.admin.v3.CommandLineOptions': 'bool skip_deprecated_logs = 41;',
  'envoy.config.metrics.v3.MetricsServiceConfig': 'uint32 batch_size = 6;',
  'envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig': `
    oneof protocol_specifier {
      envoy.config.core.v3.HttpService http_service = 9;
    }
    repeated envoy.config.core.v3.TypedExtensionConfig resource_detectors = 7;
    xds.type.matcher.v3.Matcher custom_metric_conversions = 8;
    google.protobuf.UInt32Value max_data_points_per_request = 10;`,
};
