// Ends HTTP/2 sessions that have stopped by themselves. When the peer sends what is no HTTP/2, nghttp2 says so to the peer, and reads
// and sends nothing any more; before version 22 Node tells nobody of that, and does not even notice that the peer closes the connection then.

import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';

/** How often a session is looked at. */
const LOOK_MS = 5000;
/** Node ends a session that has asked ten times in vain. */
const MOST_UNANSWERED = 8;

const watched = new WeakSet<Http2Session>();

/** It ends when it has stopped, and its streams with it, some looks later: with an error whose code is that of a broken protocol. */
export function endWhenStopped(session: Http2Session, lookMs = LOOK_MS): void {
  if (watched.has(session)) return;
  watched.add(session);
  let bytesRead = -1;
  /** How much had come when it was asked last: what comes after that may stop it. */
  let bytesAsked = -1;
  let unanswered = 0;
  const look = () => {
    const socket = socketState(session);
    if (socket === undefined) return;
    const isSilent = socket.bytesRead === bytesRead;
    ({ bytesRead } = socket);
    if (!isSilent) return;
    if (bytesAsked !== bytesRead) {
      if (unanswered === MOST_UNANSWERED) return;
      bytesAsked = bytesRead;
      unanswered++;
      // Settings, none of which is changed: a PING may be one too many for the peer. It may answer late, or not at all.
      session.settings({}, () => unanswered--);
    } else if ((session.state.outboundQueueSize ?? 0) > 0 && socket.unsent === 0) {
      // It has not sent that, although the kernel has taken all that was sent before.
      session.destroy(Object.assign(new Error('what came is not HTTP/2'), { code: 'ERR_HTTP2_ERROR' }));
    }
  };
  const timer = setInterval(look, lookMs).unref();
  session.once('close', () => clearInterval(timer));
}

interface SocketState {
  readonly bytesRead: number;
  /** How many bytes the kernel has not taken yet. */
  readonly unsent: number;
}

/** Undefined when the session has ended, or is about to. */
function socketState({ destroyed, socket }: Http2Session): SocketState | undefined {
  if (destroyed) return undefined;
  try {
    const { _handle: handle, bytesRead } = socket as SocketWithHandle;
    return handle && { bytesRead, unsent: handle.writeQueueSize };
  } catch {
    // The socket has gone: the session goes in a moment.
    return undefined;
  }
}

/** What Node does not document. */
interface SocketWithHandle extends Socket {
  readonly _handle?: { readonly writeQueueSize: number };
}
