// envoy.stat_sinks.hystrix: an event stream for circuit breaker dashboards, at an admin endpoint.

import type { HystrixSink } from '../../../config/generated/api.js';
import { onDemand, type StatsSinkExtension } from '../../sdk.js';

/** Each bucket holds five numbers for each cluster. */
const MAX_BUCKETS = 10_000;

const load = onDemand(() => import('./circuit-events.js'));

export const hystrixSink: StatsSinkExtension<HystrixSink> = {
  category: 'envoy.stats_sinks',
  name: 'envoy.stat_sinks.hystrix',
  typeUrls: ['type.googleapis.com/envoy.config.metrics.v3.HystrixSink'],
  validate(config, report) {
    const buckets = Number(config.num_buckets ?? 0);
    if (buckets < 0 || buckets > MAX_BUCKETS) report('num_buckets', `it must be 0 to ${MAX_BUCKETS}`);
  },
  async createOnPrimary(config, context) {
    const { CircuitEvents } = await load();
    return new CircuitEvents(Number(config.num_buckets ?? 0), context);
  },
};
