// envoy.tracers.zipkin: reports spans to a Zipkin collector as JSON or protobuf, and propagates B3 and W3C Trace Context.

import type { ZipkinConfig } from '../../../config/generated/api.js';
import { byValue, checkHttpService, obeyed, type TracerExtension } from '../../sdk.js';
import { STATS_PREFIX, ZipkinStats } from './stats.js';
import { ZipkinTracer } from './tracer.js';

const MESSAGE = 'envoy.config.trace.v3.ZipkinConfig';
/** The paths and hosts that a request line and a Host header can contain. */
const PATH = /^\/[\x21\x22\x24-\x7e]*$/;
const HOST = /^[\x21-\x7e]+$/;

export const zipkinTracer: TracerExtension<ZipkinConfig> = {
  category: 'envoy.tracers',
  name: 'envoy.tracers.zipkin',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: {
    [MESSAGE]: {
      ...obeyed(
        'collector_cluster',
        'collector_endpoint',
        'trace_id_128bit',
        'shared_span_context',
        'collector_hostname',
        'split_spans_for_request',
        'collector_service',
        'timestamp_trace_ids',
      ),
      collector_endpoint_version: byValue({
        DEPRECATED_AND_UNAVAILABLE_DO_NOT_USE: false,
        HTTP_JSON: true,
        HTTP_PROTO: true,
        GRPC: false,
      }),
      trace_context_option: byValue({ USE_B3: true, USE_B3_WITH_W3C_PROPAGATION: true }),
    },
  },
  validate(config, report) {
    if (config.collector_service !== undefined)
      return checkHttpService(config.collector_service, 'collector_service', report);
    if (!config.collector_cluster) report('collector_cluster', 'must be set, or collector_service');
    if (!config.collector_endpoint) report('collector_endpoint', 'must be set, or collector_service');
    else if (!PATH.test(config.collector_endpoint)) report('collector_endpoint', 'must be a path like /api/v2/spans');
    const { collector_cluster: cluster, collector_hostname: host } = config;
    if (!HOST.test(host || cluster || 'none'))
      report(
        host ? 'collector_hostname' : 'collector_cluster',
        'must be a host: the request to the collector names it',
      );
  },
  clusters: ({ collector_cluster: cluster, collector_service: service }) => [
    service === undefined
      ? ['collector_cluster', cluster]
      : ['collector_service.http_uri.cluster', service.http_uri?.cluster],
  ],
  scopes: () => [{ prefix: STATS_PREFIX, layout: ZipkinStats }],
  createOnWorker: (config, context) => new ZipkinTracer(config, context),
};
