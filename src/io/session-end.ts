// Ends HTTP/2 sessions between segments only. A session that is closed or ended by a callback amid a segment, be it by Node itself for a
// GOAWAY, has the rest of the segment read all the same. In it a request is reset while nghttp2 still holds its stream, which is freed,
// and a malformed frame fails an assertion of nghttp2 before 1.68.1 (CVE-2026-27135). With Node 20 both end the process.

import type { Http2Session } from 'node:http2';

/** Calls of the session's close() and destroy(), Node's own too, take effect when the segment that is being received has been read. */
export function endBetweenSegments(session: Http2Session): void {
  const close = session.close.bind(session);
  const destroy = session.destroy.bind(session);
  session.close = (callback) => void setImmediate(() => close(callback));
  session.destroy = (error, code) => {
    forgetFrames(error);
    setImmediate(() => destroy(error, code));
  };
}

/**
 * Until its stack is asked for, an error keeps what each frame was called on: here the native part of the session. That holds settings which
 * the peer has not acknowledged, those hold the session, and it holds the error: no collector sees the whole circle, and none of it
 * is ever freed.
 */
function forgetFrames(error: Error | number | undefined): void {
  if (error instanceof Error) void error.stack;
}
