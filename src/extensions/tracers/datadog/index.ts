// envoy.tracers.datadog: reports traces to a Datadog agent, and propagates Datadog's context and W3C Trace Context.

import type { DatadogConfig } from '../../../config/generated/api.js';
import { obeyed, refused, type TracerExtension } from '../../sdk.js';
import { DatadogStats, STATS_PREFIX } from './stats.js';
import { DatadogTracer } from './tracer.js';

const MESSAGE = 'envoy.config.trace.v3.DatadogConfig';

export const datadogTracer: TracerExtension<DatadogConfig> = {
  category: 'envoy.tracers',
  name: 'envoy.tracers.datadog',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: {
    [MESSAGE]: {
      ...obeyed('collector_cluster', 'service_name', 'collector_hostname'),
      remote_config: refused('the agent cannot change the configuration of tracing: leave it out'),
    },
  },
  clusters: ({ collector_cluster: cluster }) => [['collector_cluster', cluster]],
  scopes: () => [{ prefix: STATS_PREFIX, layout: DatadogStats }],
  createOnWorker: (config, context) => new DatadogTracer(config, context),
};
