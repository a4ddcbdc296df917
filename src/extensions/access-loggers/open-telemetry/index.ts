// envoy.access_loggers.open_telemetry: exports records to an OpenTelemetry collector, over gRPC or HTTP.

import type { OpenTelemetryAccessLogConfig } from '../../../config/generated/api.js';
import { createOtlpExporter } from '../../messages/otlp-exporter.js';
import {
  type AccessLoggerExtension,
  checkGrpcService,
  checkHttpService,
  defineLayout,
  durationMs,
  noHeaderNeeds,
  reportMistakes,
} from '../../sdk.js';
import { RecordBatch } from './batch.js';
import { Records } from './records.js';
import { encodeResource, requestEncoder } from './resource.js';

const METHOD = '/opentelemetry.proto.collector.logs.v1.LogsService/Export';
const DEFAULT_FLUSH_MS = 1000;
const DEFAULT_BUFFER_BYTES = 16_384;

/** Scope `access_logs.open_telemetry_access_log.`, with the logger's stat_prefix. */
const OpenTelemetryLogStats = defineLayout({
  /** Records that a collector has accepted, and those that were lost. */
  logs_written: 'counter',
  logs_dropped: 'counter',
});

export const openTelemetryAccessLog: AccessLoggerExtension<OpenTelemetryAccessLogConfig> = {
  category: 'envoy.access_loggers',
  name: 'envoy.access_loggers.open_telemetry',
  typeUrls: ['type.googleapis.com/envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig'],
  validate(config, report) {
    const { common_config: common, grpc_service: byGrpc, http_service: byHttp } = config;
    const services = [common?.grpc_service, byGrpc, byHttp].filter((service) => service !== undefined);
    if (services.length !== 1) report('', 'set one of grpc_service, http_service and common_config');
    checkGrpcService(byGrpc, 'grpc_service', report);
    checkGrpcService(common?.grpc_service, 'common_config.grpc_service', report);
    checkHttpService(byHttp, 'http_service', report);
    if ((byGrpc ?? common?.grpc_service)?.google_grpc !== undefined)
      report('grpc_service.google_grpc', 'workers call the hosts of clusters: use envoy_grpc');
    reportMistakes(report, '', () => new Records(config, noHeaderNeeds()));
  },
  clusters: ({ common_config: common, grpc_service: byGrpc, http_service: byHttp }) => [
    ['common_config.grpc_service.envoy_grpc.cluster_name', common?.grpc_service?.envoy_grpc?.cluster_name],
    ['grpc_service.envoy_grpc.cluster_name', byGrpc?.envoy_grpc?.cluster_name],
    ['http_service.http_uri.cluster', byHttp?.http_uri?.cluster],
  ],
  scopes: (config) => [{ prefix: statsPrefix(config), layout: OpenTelemetryLogStats }],
  createOnWorker(config, context) {
    const { common_config: common } = config;
    const needs = noHeaderNeeds();
    const records = new Records(config, needs);
    const stats = context.scope(statsPrefix(config), OpenTelemetryLogStats);
    const { at } = OpenTelemetryLogStats;
    const services = { grpc_service: config.grpc_service ?? common?.grpc_service, http_service: config.http_service };
    const options = {
      flushMs: durationMs(config.buffer_flush_interval ?? common?.buffer_flush_interval, DEFAULT_FLUSH_MS),
      maxBytes: config.buffer_size_bytes ?? common?.buffer_size_bytes ?? DEFAULT_BUFFER_BYTES,
      encode: requestEncoder(encodeResource(config, context.identity)),
    };
    const batch = new RecordBatch(createOtlpExporter(services, METHOD, context.calls), context.timers, options, {
      written: (count) => stats.add(at.logs_written, count),
      dropped: (count) => stats.add(at.logs_dropped, count),
    });
    return { needs, log: (info) => batch.add(records.encode(info)), close: () => batch.close() };
  },
};

function statsPrefix({ stat_prefix: prefix = '' }: OpenTelemetryAccessLogConfig): string {
  return `access_logs.open_telemetry_access_log.${prefix}`;
}
