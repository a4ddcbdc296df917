// envoy.stat_sinks.metrics_service: streams metrics in Prometheus's data model to a gRPC service.

import type { MetricsServiceConfig } from '../../../config/generated/api.js';
import { checkGrpcService, onDemand, type StatsSinkExtension } from '../../sdk.js';

const load = onDemand(() => import('./metrics-service.js'));

export const metricsServiceSink: StatsSinkExtension<MetricsServiceConfig> = {
  category: 'envoy.stats_sinks',
  name: 'envoy.stat_sinks.metrics_service',
  typeUrls: ['type.googleapis.com/envoy.config.metrics.v3.MetricsServiceConfig'],
  validate(config, report) {
    checkGrpcService(config.grpc_service, 'grpc_service', report);
    if (config.grpc_service?.retry_policy !== undefined)
      report('grpc_service.retry_policy', 'the next flush opens another stream: leave it out');
  },
  async createOnPrimary(config, context) {
    const { MetricsServiceSink } = await load();
    return new MetricsServiceSink(config, context);
  },
};
