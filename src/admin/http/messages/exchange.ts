// A request and its answer, whichever of HTTP/1.1 and HTTP/2 carries them: what the two kinds of objects of Node do not share.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';

export type AdminIncoming = IncomingMessage | Http2ServerRequest;
export type AdminOutgoing = ServerResponse | Http2ServerResponse;

/** Error codes of HTTP/2 (RFC 9113 §7): node:http2 is loaded for the first client that speaks it. */
const INTERNAL_ERROR = 2;
const CANCEL = 8;

/** Whether the client takes no more of the answer. */
export function isGone(response: AdminOutgoing): boolean {
  return isHttp2(response) ? response.stream.destroyed : response.destroyed;
}

/** Sets a header of the answer. HTTP/2 has none for the connection: Node warns of it on standard error. */
export function setHeader(response: AdminOutgoing, name: string, value: string): void {
  if (name !== 'connection' || !isHttp2(response)) response.setHeader(name, value);
}

/** Sends the head of the answer now. */
export function flushHead(response: AdminOutgoing): void {
  // HTTP/2 has sent it already.
  if (!isHttp2(response)) response.flushHeaders();
}

/** Sends a part of the body; false when the client is to take what waits for it first. */
export function write(response: AdminOutgoing, part: Uint8Array): boolean {
  return isHttp2(response) ? response.write(part) : response.write(part);
}

/** Ends an answer that cannot be completed, so that it does not look complete. */
export function cut(response: AdminOutgoing): void {
  if (isHttp2(response)) response.stream.close(INTERNAL_ERROR);
  else response.destroy();
}

/**
 * Cuts a client that takes nothing, for `timeoutMs`, of the bytes that wait for it. One that has nothing to take is waiting
 * too: a stream that is silent for a while. Requests have to come to their end in time as well: HTTP/1's server sees to that.
 */
export function cutWhenStalled(response: AdminOutgoing, timeoutMs: number): void {
  if (isHttp2(response)) {
    const { stream, req } = response;
    response.setTimeout(timeoutMs, () => {
      if (stream.writableLength === 0 && req.readableEnded) return;
      stream.close(CANCEL);
      // Where the client has broken the protocol no frame goes out any more, and the stream would never be over.
      stream.destroy();
    });
  } else {
    response.setTimeout(timeoutMs, () => {
      const { socket } = response;
      if (socket !== null && socket.writableLength > 0) socket.destroy();
    });
  }
}

/** Bytes of the answer that the client has not taken yet, as far as Node knows them. */
export function pendingBytes(response: AdminOutgoing): number {
  return isHttp2(response) ? response.stream.writableLength : response.writableLength;
}

function isHttp2(response: AdminOutgoing): response is Http2ServerResponse {
  return 'stream' in response;
}
