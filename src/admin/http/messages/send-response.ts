// Sends an answer: headers first, then the body as fast as the client reads it, with a turn of the loop between two pieces.

import type { AdminResponse, Pieces } from '../../admin-handler.js';
import { nextPieceTurn } from '../turns.js';
import { type AdminOutgoing, cut, flushHead, isGone, setHeader, write } from './exchange.js';

/** Default fields of every answer. */
export const DEFAULT_FIELDS = {
  'content-type': 'text/plain; charset=UTF-8',
  'cache-control': 'no-cache, max-age=0',
  'x-content-type-options': 'nosniff',
  server: 'baton',
};

/**
 * Resolves with the number of body bytes sent, when all is sent or the client has disconnected. Rejects if the body's source throws.
 */
export async function sendResponse(response: AdminOutgoing, answer: AdminResponse, isHead: boolean): Promise<number> {
  const { status = 200, contentType, headers, body } = answer;
  const head = { ...DEFAULT_FIELDS, ...(contentType !== undefined && { 'content-type': contentType }), ...headers };
  // Headers passed to writeHead() are missing in HTTP/1's getHeaders(), and so in the access log.
  for (const [name, value] of Object.entries(head)) setHeader(response, name, value);
  response.writeHead(status);
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return sendPieces(response, body, isHead);
  if (isHead) {
    response.end();
    return 0;
  }
  response.end(body);
  return Buffer.byteLength(body);
}

async function sendPieces(response: AdminOutgoing, body: Pieces, isHead: boolean): Promise<number> {
  const pieces = Symbol.asyncIterator in body ? body[Symbol.asyncIterator]() : body[Symbol.iterator]();
  // Immediately, not when the next piece is available: an event stream may be silent for a long time.
  response.once('close', () => void pieces.return?.());
  body.whenCut?.(() => cut(response));
  // A client that left earlier triggers no 'close'.
  let length = 0;
  if (isGone(response) || isHead) await pieces.return?.();
  else {
    // The first piece may take a long time.
    flushHead(response);
    length = await pump(pieces, response);
  }
  response.end();
  return length;
}

async function pump(
  pieces: Iterator<Uint8Array> | AsyncIterator<Uint8Array>,
  response: AdminOutgoing,
): Promise<number> {
  for (let length = 0; ; ) {
    // The kernel often accepts a piece immediately; without turns a fast reader would block the thread.
    await nextPieceTurn();
    if (isGone(response)) return length;
    const { done, value } = await pieces.next();
    if (done === true || isGone(response)) return length;
    length += value.length;
    // An empty piece only means that the next one takes long to produce.
    if (value.length > 0 && !write(response, value)) await drained(response);
  }
}

function drained(response: AdminOutgoing): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}
