// envoy.stat_sinks.open_telemetry: exports metrics to an OpenTelemetry collector over gRPC or HTTP.

import type { SinkConfig } from '../../../config/generated/api.js';
import {
  checkGrpcService,
  checkHttpService,
  onDemand,
  type PrimaryContext,
  type StatsSinkExtension,
} from '../../sdk.js';
import type { Exporter } from './exporter.js';

const loadSink = onDemand(() => import('./open-telemetry.js'));
const loadHttp = onDemand(() => import('./http-exporter.js'));
const loadGrpc = onDemand(() => import('./grpc-exporter.js'));

export const openTelemetrySink: StatsSinkExtension<SinkConfig> = {
  category: 'envoy.stats_sinks',
  name: 'envoy.stat_sinks.open_telemetry',
  typeUrls: ['type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig'],
  validate(config, report) {
    const { grpc_service: byGrpc, http_service: byHttp } = config;
    checkGrpcService(byGrpc, 'grpc_service', report);
    checkHttpService(byHttp, 'http_service', report);
  },
  async createOnPrimary(config, context) {
    const { OpenTelemetrySink } = await loadSink();
    return new OpenTelemetrySink(config, context.node, await createExporter(config, context));
  },
};

async function createExporter(config: SinkConfig, context: PrimaryContext): Promise<Exporter> {
  if (config.http_service !== undefined) {
    const { HttpExporter } = await loadHttp();
    return new HttpExporter(config.http_service, context.calls);
  }
  const { GrpcExporter } = await loadGrpc();
  return new GrpcExporter(config.grpc_service!, context.calls);
}
