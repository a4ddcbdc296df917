// envoy.stat_sinks.statsd: sends lines to a statsd server over UDP, a Unix datagram socket, or TCP to a host of a cluster.

import type { StatsdSink } from '../../../config/generated/api.js';
import { onDemand, type StatsSinkExtension } from '../../sdk.js';
import { checkDatagramAddress } from '../lines/datagram-address.js';

const load = onDemand(() => import('./statsd.js'));

export const statsdSink: StatsSinkExtension<StatsdSink> = {
  category: 'envoy.stats_sinks',
  name: 'envoy.stat_sinks.statsd',
  typeUrls: ['type.googleapis.com/envoy.config.metrics.v3.StatsdSink'],
  validate(config, report) {
    checkDatagramAddress(config.address, report);
  },
  clusters: ({ tcp_cluster_name: cluster }) => [['tcp_cluster_name', cluster]],
  async createOnPrimary(config, context) {
    const { createStatsdSink } = await load();
    return createStatsdSink(config, context);
  },
};
