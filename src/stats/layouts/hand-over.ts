// Stats of connections that are handed over to the next process.

import { defineLayout } from '../layout.js';

/** Scope `server.hand_over.`, with --hand-over-connections. */
export const HandOverStats = defineLayout({
  connections_sent: 'counter',
  connections_kept: 'counter',
  connections_received: 'counter',
  connections_refused: 'counter',
});
