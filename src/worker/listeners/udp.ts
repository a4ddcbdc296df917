// Builds a UDP listener of one worker.

import { rxDatagramBytes } from '../../config/fields/udp.js';
import type { UdpListenerFilterExtension, WorkerContext } from '../../extensions/factories.js';
import type { UdpListenerFilter } from '../../listener/udp/udp-filter.js';
import { UdpListener } from '../../listener/udp/udp-listener.js';
import { UdpListenerStats } from '../../stats/layouts/udp.js';
import type { ListenerSnapshot } from '../messages/messages.js';

/** Throws when a filter cannot be built. */
export function createUdpListener(snapshot: ListenerSnapshot, context: WorkerContext): UdpListener {
  const { config, id, name, statToken } = snapshot;
  const filters: UdpListenerFilter[] = [];
  // Before the filters, which need closing when it fails.
  const sockets = context.datagrams.open();
  try {
    for (const { typed_config: filter } of config.listener_filters ?? []) {
      const extension = context.extensions.udpListenerFilter(filter!);
      const listener = { name, statToken, bufferLimit: 0 };
      filters.push(checked(extension.createOnWorker(filter, listener, context), extension));
    }
    return new UdpListener({
      id,
      name,
      filters,
      sockets,
      overload: config.bypass_overload_manager ? undefined : context.overload,
      stats: context.scope(`listener.${statToken}.udp.`, UdpListenerStats),
      maxBytes: rxDatagramBytes(config.udp_listener_config?.downstream_socket_config, false),
    });
  } catch (error) {
    for (const filter of filters) filter.close();
    throw error;
  }
}

function checked(filter: UdpListenerFilter, { name }: UdpListenerFilterExtension): UdpListenerFilter {
  if (typeof filter?.onDatagram === 'function' && typeof filter.close === 'function') return filter;
  throw new TypeError(`createOnWorker() of '${name}' returned no object with onDatagram() and close()`);
}
