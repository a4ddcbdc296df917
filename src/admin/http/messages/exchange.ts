// Operations on requests and answers for which Node's HTTP/1.1 and HTTP/2 objects differ.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';

export type AdminIncoming = IncomingMessage | Http2ServerRequest;
export type AdminOutgoing = ServerResponse | Http2ServerResponse;

/** Error codes of HTTP/2 (RFC 9113 §7). Constants, because node:http2 is loaded only for the first HTTP/2 client. */
const INTERNAL_ERROR = 2;
const CANCEL = 8;

/** Returns whether the client no longer reads the answer. */
export function isGone(response: AdminOutgoing): boolean {
  return isHttp2(response) ? response.stream.destroyed : response.destroyed;
}

/** Sets a header of the answer. HTTP/2 has no Connection header: Node would print a warning. */
export function setHeader(response: AdminOutgoing, name: string, value: string): void {
  if (name !== 'connection' || !isHttp2(response)) response.setHeader(name, value);
}

/** Sends the head of the answer now. */
export function flushHead(response: AdminOutgoing): void {
  // HTTP/2 has already sent it.
  if (!isHttp2(response)) response.flushHeaders();
}

/** Sends a part of the body; returns false if the client must first read what is buffered. */
export function write(response: AdminOutgoing, part: Uint8Array): boolean {
  return isHttp2(response) ? response.write(part) : response.write(part);
}

/** Ends an incomplete answer so that it does not look complete. */
export function cut(response: AdminOutgoing): void {
  if (isHttp2(response)) response.stream.close(INTERNAL_ERROR);
  else response.destroy();
}

/**
 * Cuts off a client that reads none of the bytes that wait for it for `timeoutMs`. A client without pending bytes is not cut
 * off: a stream may be silent. HTTP/1's server limits the time of requests.
 */
export function cutWhenStalled(response: AdminOutgoing, timeoutMs: number): void {
  if (isHttp2(response)) {
    const { stream, req } = response;
    response.setTimeout(timeoutMs, () => {
      if (stream.writableLength === 0 && req.readableEnded) return;
      stream.close(CANCEL);
      // After a protocol error no frame is sent, and the stream would never end.
      stream.destroy();
    });
  } else {
    response.setTimeout(timeoutMs, () => {
      const { socket } = response;
      if (socket !== null && socket.writableLength > 0) socket.destroy();
    });
  }
}

/** Returns the bytes of the answer that Node still buffers for the client. */
export function pendingBytes(response: AdminOutgoing): number {
  return isHttp2(response) ? response.stream.writableLength : response.writableLength;
}

function isHttp2(response: AdminOutgoing): response is Http2ServerResponse {
  return 'stream' in response;
}
