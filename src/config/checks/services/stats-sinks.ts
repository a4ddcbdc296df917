// Sinks of stats: the clusters that they send to.

import type { StatsSink } from '../../generated/api.js';
import { unpack } from '../../schema/any.js';
import { checkGrpcCall } from '../clusters/grpc-clusters.js';
import { checkNamedClusters } from '../names/named-clusters.js';
import type { Surroundings } from '../surroundings.js';
import { checkHttpCall } from './http-services.js';

const METRICS_SERVICE = 'envoy.config.metrics.v3.MetricsServiceConfig';
const OPEN_TELEMETRY = 'envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig';
const HYSTRIX = 'envoy.config.metrics.v3.HystrixSink';

export function checkStatsSinks(sinks: readonly StatsSink[], around: Surroundings): void {
  let streams = 0;
  sinks.forEach((sink, index) => {
    const path = ['stats_sinks', index, 'typed_config'];
    if (unpack(sink?.typed_config, HYSTRIX) && ++streams > 1) {
      around.problems.error(path, 'there may be only one event stream of circuit breakers');
    }
    const collector = unpack(sink?.typed_config, OPEN_TELEMETRY);
    const service = unpack(sink?.typed_config, METRICS_SERVICE) ?? collector;
    checkGrpcCall(service?.grpc_service, [...path, 'grpc_service'], around);
    checkHttpCall(collector?.http_service, [...path, 'http_service'], around);
    checkNamedClusters(sink?.typed_config, path, around, true);
  });
}
