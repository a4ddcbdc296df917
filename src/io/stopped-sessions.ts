// Detects and ends HTTP/2 sessions that have stopped. When the peer sends invalid HTTP/2, nghttp2 sends a GOAWAY and stops reading and
// sending. Before version 22, Node does not report that, nor does it notice when the peer then closes the connection.

import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';

/** Interval between checks of a session. */
const CHECK_MS = 5000;
/** Node ends a session with ten unanswered SETTINGS frames; this stays below that. */
const MAX_UNANSWERED = 8;

const watched = new WeakSet<Http2Session>();

/** Ends the session and its streams within a few checks after it has stopped, with the error code ERR_HTTP2_ERROR. */
export function endWhenStopped(session: Http2Session, intervalMs = CHECK_MS): void {
  if (watched.has(session)) return;
  watched.add(session);
  let bytesRead = -1;
  /** Bytes read at the last probe: later input may stop the session. */
  let bytesAtProbe = -1;
  let unanswered = 0;
  const check = () => {
    const socket = socketState(session);
    if (socket === undefined) return;
    const isSilent = socket.bytesRead === bytesRead;
    ({ bytesRead } = socket);
    if (!isSilent) return;
    if (bytesAtProbe !== bytesRead) {
      if (unanswered === MAX_UNANSWERED) return;
      bytesAtProbe = bytesRead;
      unanswered++;
      // An empty SETTINGS frame, because a PING may exceed the peer's limit. The answer may come late or not at all.
      session.settings({}, () => unanswered--);
    } else if ((session.state.outboundQueueSize ?? 0) > 0 && socket.unsent === 0) {
      // The probe is still queued although the kernel has accepted all earlier bytes: the session has stopped.
      session.destroy(Object.assign(new Error('the peer sent invalid HTTP/2'), { code: 'ERR_HTTP2_ERROR' }));
    }
  };
  const timer = setInterval(check, intervalMs).unref();
  session.once('close', () => clearInterval(timer));
}

interface SocketState {
  readonly bytesRead: number;
  /** Bytes that the kernel has not accepted yet. */
  readonly unsent: number;
}

/** Returns undefined if the session has ended or is about to. */
function socketState({ destroyed, socket }: Http2Session): SocketState | undefined {
  if (destroyed) return undefined;
  try {
    const { _handle: handle, bytesRead } = socket as SocketWithHandle;
    return handle && { bytesRead, unsent: handle.writeQueueSize };
  } catch {
    // The socket is destroyed; the session follows in a moment.
    return undefined;
  }
}

/** Undocumented parts of Node's sockets. */
interface SocketWithHandle extends Socket {
  readonly _handle?: { readonly writeQueueSize: number };
}
