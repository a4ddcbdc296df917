// envoy.tracers.skywalking: reports segments to SkyWalking over gRPC, and propagates sw8.

import type { SkyWalkingConfig } from '../../../config/generated/api.js';
import { checkGrpcService, obeyed, type TracerExtension } from '../../sdk.js';
import { SkyWalkingStats, STATS_PREFIX } from './stats.js';
import { SkyWalkingTracer } from './tracer.js';

const MESSAGE = 'envoy.config.trace.v3.SkyWalkingConfig';
const CLIENT = 'envoy.config.trace.v3.ClientConfig';

export const skyWalkingTracer: TracerExtension<SkyWalkingConfig> = {
  category: 'envoy.tracers',
  name: 'envoy.tracers.skywalking',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: {
    [MESSAGE]: obeyed('grpc_service', 'client_config'),
    [CLIENT]: obeyed('service_name', 'instance_name', 'backend_token', 'max_cache_size'),
  },
  validate({ grpc_service: service }, report) {
    checkGrpcService(service, 'grpc_service', report);
    if (service?.google_grpc !== undefined)
      report('grpc_service.google_grpc', 'workers call the hosts of clusters: use envoy_grpc');
  },
  clusters: ({ grpc_service: service }) => [
    ['grpc_service.envoy_grpc.cluster_name', service?.envoy_grpc?.cluster_name],
  ],
  scopes: () => [{ prefix: STATS_PREFIX, layout: SkyWalkingStats }],
  createOnWorker: (config, context) => new SkyWalkingTracer(config, context),
};
