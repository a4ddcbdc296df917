// A statsd that sums the counters of all processes.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Config, Teardown } from '../harness/index.js';

/** Starts the statsd; returns the sink configuration for it. */
export async function startStatsd(t: Teardown, sums: Map<string, number>): Promise<Config> {
  const socket = createSocket('udp4', (message) => {
    for (const text of message.toString().split('\n')) {
      const match = /^(\S+):(\d+)\|c/.exec(text);
      if (match) sums.set(match[1]!, (sums.get(match[1]!) ?? 0) + Number(match[2]));
    }
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(() => void socket.close());
  return {
    name: 'statsd',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.config.metrics.v3.StatsdSink',
      address: { socket_address: { address: '127.0.0.1', port_value: (socket.address() as AddressInfo).port } },
      prefix: 'p',
    },
  };
}
