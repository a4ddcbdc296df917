// Creates the statsd sink. Loaded when one is configured.

import type { StatsdSink } from '../../../config/generated/api.js';
import type { PrimaryContext, StatsSink } from '../../sdk.js';
import { Condition } from '../condition.js';
import { ClusterWriter } from '../lines/cluster-writer.js';
import { datagramSocket } from '../lines/datagram-address.js';
import { DatagramWriter } from '../lines/datagram-writer.js';
import { DEFAULT_PREFIX, plainLines } from '../lines/line-format.js';
import { LineSink } from '../lines/line-sink.js';
import { overCluster } from '../service-name.js';

export function createStatsdSink(config: StatsdSink, context: PrimaryContext): StatsSink {
  const format = plainLines(config.prefix || DEFAULT_PREFIX);
  const { address, tcp_cluster_name: cluster } = config;
  if (address !== undefined) return new LineSink(format, new DatagramWriter(datagramSocket(address, 'statsd'), 0));
  return new LineSink(
    format,
    new ClusterWriter(context.calls, cluster!, new Condition(`statsd ${overCluster(cluster)}`)),
  );
}
