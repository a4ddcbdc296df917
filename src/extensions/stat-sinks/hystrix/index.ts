// envoy.stat_sinks.hystrix: the event stream of clusters that circuit breaker dashboards read, at an admin endpoint.

import type { HystrixSink } from '../../../config/generated/api.js';
import { onDemand, type StatsSinkExtension } from '../../sdk.js';

/** Each bucket holds five numbers of each cluster. */
const MOST_BUCKETS = 10_000;

const load = onDemand(() => import('./circuit-events.js'));

export const hystrixSink: StatsSinkExtension<HystrixSink> = {
  category: 'envoy.stats_sinks',
  name: 'envoy.stat_sinks.hystrix',
  typeUrls: ['type.googleapis.com/envoy.config.metrics.v3.HystrixSink'],
  validate(config, report) {
    const buckets = Number(config.num_buckets ?? 0);
    if (buckets < 0 || buckets > MOST_BUCKETS) report('num_buckets', `it must be 0 to ${MOST_BUCKETS}`);
  },
  async createOnPrimary(config, context) {
    const { CircuitEvents } = await load();
    return new CircuitEvents(Number(config.num_buckets ?? 0), context);
  },
};
