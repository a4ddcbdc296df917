// Stats sinks: the clusters that they send to.

import type { StatsSink } from '../../generated/api.js';
import { unpack } from '../../schema/any.js';
import type { CheckContext } from '../check-context.js';
import { checkGrpcCall } from '../clusters/grpc-clusters.js';
import { checkExtensionNames } from '../names/extension-names.js';
import { checkHttpCall } from './http-services.js';

const METRICS_SERVICE = 'envoy.config.metrics.v3.MetricsServiceConfig';
const OPEN_TELEMETRY = 'envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig';
const HYSTRIX = 'envoy.config.metrics.v3.HystrixSink';

export function checkStatsSinks(sinks: readonly StatsSink[], context: CheckContext): void {
  let streams = 0;
  sinks.forEach((sink, index) => {
    const path = ['stats_sinks', index, 'typed_config'];
    if (unpack(sink?.typed_config, HYSTRIX) && ++streams > 1) {
      context.problems.error(path, 'there can be only one Hystrix sink');
    }
    const collector = unpack(sink?.typed_config, OPEN_TELEMETRY);
    const service = unpack(sink?.typed_config, METRICS_SERVICE) ?? collector;
    checkGrpcCall(service?.grpc_service, [...path, 'grpc_service'], context);
    checkHttpCall(collector?.http_service, [...path, 'http_service'], context);
    checkExtensionNames(sink?.typed_config, path, context, true);
  });
}
