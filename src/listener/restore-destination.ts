// The listener filter that restores the original destination of redirected connections, and the ends that the opener of a connection to an
// internal listener has passed. It needs no bytes of the client.

import type { ListenerFilter } from './listener-filter.js';

/** Connections whose original destination is unknown keep their local address. */
export const RESTORES_DESTINATION: ListenerFilter = {
  maxBytes: 0,
  inspect(_bytes, connection) {
    const destination = connection.originalDestination();
    if (destination !== undefined) connection.local = destination;
    const source = connection.originalSource?.();
    if (source !== undefined) connection.remote = source;
    return 0;
  },
};
