// Creates the two sinks whose lines have tags (DogStatsD, Graphite). Loaded when one is configured.

import type { DogStatsdSink, GraphiteStatsdSink } from '../../../config/generated/api.js';
import type { StatsSink } from '../../sdk.js';
import { datagramSocket } from './datagram-address.js';
import { DatagramWriter } from './datagram-writer.js';
import { DEFAULT_PREFIX, dogLines, graphiteLines } from './line-format.js';
import { LineSink } from './line-sink.js';

export function createTaggedSink(config: DogStatsdSink | GraphiteStatsdSink, form: 'dog' | 'graphite'): StatsSink {
  const prefix = config.prefix || DEFAULT_PREFIX;
  const format = form === 'dog' ? dogLines(prefix) : graphiteLines(prefix);
  const socket = datagramSocket(config.address!, `${form} statsd`);
  return new LineSink(format, new DatagramWriter(socket, Number(config.max_bytes_per_datagram ?? 0)));
}
