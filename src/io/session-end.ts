// Closes HTTP/2 sessions between segments only. If a callback closes or destroys a session within a segment, as Node itself does for a
// GOAWAY, nghttp2 still reads the rest of the segment. That may reset a request whose stream nghttp2 still uses after it was freed, and a
// malformed frame fails an assertion of nghttp2 before 1.68.1 (CVE-2026-27135). With Node 20 both crash the process.

import type { Http2Session } from 'node:http2';

/** Delays the session's close() and destroy(), including Node's own calls, until the current segment has been read. */
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
 * Computes the stack text of an error, which releases the receivers of its stack frames; here one is the native session. The native session
 * holds settings that the peer has not acknowledged, the settings hold the session, and the session holds the error: a cycle through native
 * code that no collector can free.
 */
function forgetFrames(error: Error | number | undefined): void {
  if (error instanceof Error) void error.stack;
}
