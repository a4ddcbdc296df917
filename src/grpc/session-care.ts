// Makes the HTTP/2 sessions of grpc-js end only between segments. A server that closes within a segment, followed by a malformed
// frame, would end the process with Node 20 (see endBetweenSegments). This must apply from the first segment on, before grpc-js
// exposes its session, so connect() of node:http2 is wrapped. No other code in Baton creates client sessions.

import http2 from 'node:http2';
import { endBetweenSegments } from '../io/session-end.js';

const original = http2.connect;

/** Applies to all client sessions that this thread creates from now on. */
export function endClientsBetweenSegments(): void {
  (http2 as { connect: unknown }).connect = connect;
}

function connect(...settings: Parameters<typeof original>): ReturnType<typeof original> {
  const session = original(...settings);
  endBetweenSegments(session);
  return session;
}
