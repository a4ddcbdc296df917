// envoy.stat_sinks.dog_statsd: sends lines with tags to a DogStatsD agent over UDP or a Unix datagram socket.

import type { DogStatsdSink } from '../../../config/generated/api.js';
import { onDemand, type StatsSinkExtension } from '../../sdk.js';
import { checkDatagramAddress } from '../lines/datagram-address.js';

const load = onDemand(() => import('../lines/tagged-sink.js'));

export const dogStatsdSink: StatsSinkExtension<DogStatsdSink> = {
  category: 'envoy.stats_sinks',
  name: 'envoy.stat_sinks.dog_statsd',
  typeUrls: ['type.googleapis.com/envoy.config.metrics.v3.DogStatsdSink'],
  validate(config, report) {
    checkDatagramAddress(config.address, report);
  },
  async createOnPrimary(config) {
    const { createTaggedSink } = await load();
    return createTaggedSink(config, 'dog');
  },
};
