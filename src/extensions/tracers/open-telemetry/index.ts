// envoy.tracers.opentelemetry: reports spans to an OpenTelemetry collector over gRPC or HTTP, and propagates W3C Trace Context.

import type { OpenTelemetryConfig } from '../../../config/generated/api.js';
import { createOtlpExporter } from '../../messages/otlp-exporter.js';
import {
  checkGrpcService,
  checkHttpService,
  type NamedExtension,
  obeyed,
  refused,
  type TracerExtension,
} from '../../sdk.js';
import { ENVIRONMENT, STATIC } from './resource.js';
import { ALWAYS_ON, PARENT_BASED, RATIO_BASED } from './samplers.js';
import { OpenTelemetryStats, STATS_PREFIX } from './stats.js';
import { OpenTelemetryTracer } from './tracer.js';

const MESSAGE = 'envoy.config.trace.v3.OpenTelemetryConfig';
const METHOD = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';

export const openTelemetryTracer: TracerExtension<OpenTelemetryConfig> = {
  category: 'envoy.tracers',
  name: 'envoy.tracers.opentelemetry',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: {
    [MESSAGE]: {
      ...obeyed(
        'grpc_service',
        'http_service',
        'service_name',
        'resource_detectors',
        'sampler',
        'max_cache_size',
        'set_telemetry_sdk_resource_attributes',
        'set_service_name_resource_attribute',
        'set_instrumentation_scope',
      ),
      exporter: refused('there is no such extension: use grpc_service or http_service'),
    },
  },
  validate(config, report) {
    const { grpc_service: byGrpc, http_service: byHttp } = config;
    if ((byGrpc === undefined) === (byHttp === undefined)) report('', 'set grpc_service or http_service, and not both');
    checkGrpcService(byGrpc, 'grpc_service', report);
    checkHttpService(byHttp, 'http_service', report);
    if (byGrpc?.google_grpc !== undefined)
      report('grpc_service.google_grpc', 'workers call the hosts of clusters: use envoy_grpc');
  },
  clusters: ({ grpc_service: byGrpc, http_service: byHttp }) => [
    ['grpc_service.envoy_grpc.cluster_name', byGrpc?.envoy_grpc?.cluster_name],
    ['http_service.http_uri.cluster', byHttp?.http_uri?.cluster],
  ],
  scopes: () => [{ prefix: STATS_PREFIX, layout: OpenTelemetryStats }],
  createOnWorker(config, context) {
    return new OpenTelemetryTracer(config, context, createOtlpExporter(config, METHOD, context.calls));
  },
};

/** Parts of the configuration that the tracer reads itself. */
export const openTelemetryParts: readonly NamedExtension[] = [
  {
    category: 'envoy.tracers.opentelemetry.resource_detectors',
    name: 'envoy.tracers.opentelemetry.resource_detectors.environment',
    typeUrls: [`type.googleapis.com/${ENVIRONMENT}`],
    implemented: { [ENVIRONMENT]: {} },
  },
  {
    category: 'envoy.tracers.opentelemetry.resource_detectors',
    name: 'envoy.tracers.opentelemetry.resource_detectors.static_config',
    typeUrls: [`type.googleapis.com/${STATIC}`],
    implemented: { [STATIC]: obeyed('attributes') },
  },
  {
    category: 'envoy.tracers.opentelemetry.samplers',
    name: 'envoy.tracers.opentelemetry.samplers.always_on',
    typeUrls: [`type.googleapis.com/${ALWAYS_ON}`],
    implemented: { [ALWAYS_ON]: {} },
  },
  {
    category: 'envoy.tracers.opentelemetry.samplers',
    name: 'envoy.tracers.opentelemetry.samplers.parent_based',
    typeUrls: [`type.googleapis.com/${PARENT_BASED}`],
    implemented: { [PARENT_BASED]: obeyed('wrapped_sampler') },
  },
  {
    category: 'envoy.tracers.opentelemetry.samplers',
    name: 'envoy.tracers.opentelemetry.samplers.trace_id_ratio_based',
    typeUrls: [`type.googleapis.com/${RATIO_BASED}`],
    implemented: { [RATIO_BASED]: obeyed('sampling_percentage') },
  },
];
