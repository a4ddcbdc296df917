// Ends the HTTP/2 sessions that grpc-js makes between segments: a server that goes away amid one, and sends a malformed frame behind that,
// would end the process with Node 20 (see endBetweenSegments). That holds from the first segment on, before which grpc-js gives nobody its
// session: so it is taken where grpc-js has it from. Nothing else of Baton makes such sessions.

import http2 from 'node:http2';
import { endBetweenSegments } from '../io/session-end.js';

const original = http2.connect;

/** Every client session that is made in this thread from now on ends so. */
export function endClientsBetweenSegments(): void {
  (http2 as { connect: unknown }).connect = connect;
}

function connect(...settings: Parameters<typeof original>): ReturnType<typeof original> {
  const session = original(...settings);
  endBetweenSegments(session);
  return session;
}
