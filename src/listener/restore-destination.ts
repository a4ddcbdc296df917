// The listener filter that restores the original destination of redirected connections. It needs no bytes of the client.

import type { ListenerFilter } from './listener-filter.js';

/** Connections whose original destination is unknown keep their local address. */
export const RESTORES_DESTINATION: ListenerFilter = {
  maxBytes: 0,
  inspect(_bytes, connection) {
    const destination = connection.originalDestination();
    if (destination !== undefined) connection.local = destination;
    return 0;
  },
};
