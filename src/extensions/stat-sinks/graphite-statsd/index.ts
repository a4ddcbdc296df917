// envoy.stat_sinks.graphite_statsd: sends lines with Graphite's tags over UDP or a Unix datagram socket.

import type { GraphiteStatsdSink } from '../../../config/generated/api.js';
import { onDemand, type StatsSinkExtension } from '../../sdk.js';
import { checkDatagramAddress } from '../lines/datagram-address.js';

const load = onDemand(() => import('../lines/tagged-sink.js'));

export const graphiteStatsdSink: StatsSinkExtension<GraphiteStatsdSink> = {
  category: 'envoy.stats_sinks',
  name: 'envoy.stat_sinks.graphite_statsd',
  typeUrls: ['type.googleapis.com/envoy.extensions.stat_sinks.graphite_statsd.v3.GraphiteStatsdSink'],
  validate(config, report) {
    checkDatagramAddress(config.address, report);
  },
  async createOnPrimary(config) {
    const { createTaggedSink } = await load();
    return createTaggedSink(config, 'graphite');
  },
};
