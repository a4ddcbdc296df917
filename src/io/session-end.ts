// Ends HTTP/2 sessions between segments only. A session that is ended by a callback amid a segment, be it by Node itself for a GOAWAY,
// has the rest of the segment read all the same: a malformed frame in it then fails an assertion of nghttp2 before 1.68.1
// (CVE-2026-27135), which Node 20 has, and that ends the process.

import type { Http2Session } from 'node:http2';

/** Calls of the session's destroy(), Node's own too, take effect when the segment that is being received has been read. */
export function endBetweenSegments(session: Http2Session): void {
  const destroy = session.destroy.bind(session);
  session.destroy = (error, code) => void setImmediate(() => destroy(error, code));
}
