// Sends an answer: headers first, then the body as fast as the client takes it, with a turn of the loop between two pieces.

import type { AdminResponse, Pieces } from '../../admin-handler.js';
import { nextPieceTurn } from '../turns.js';
import { type AdminOutgoing, cut, flushHead, isGone, setHeader, write } from './exchange.js';

/** What every answer has, unless its handler says otherwise. */
export const USUAL_FIELDS = {
  'content-type': 'text/plain; charset=UTF-8',
  'cache-control': 'no-cache, max-age=0',
  'x-content-type-options': 'nosniff',
  server: 'baton',
};

/**
 * Resolves when all is sent or the client is gone, with the length of the body as far as it was sent. Rejects when the body's
 * source throws.
 */
export async function sendResponse(response: AdminOutgoing, answer: AdminResponse, isHead: boolean): Promise<number> {
  const { status = 200, contentType, headers, body } = answer;
  const head = { ...USUAL_FIELDS, ...(contentType !== undefined && { 'content-type': contentType }), ...headers };
  // Those that writeHead() is given are not known to HTTP/1's getHeaders(), and so to no log.
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
  // At once, not when the next piece is there: an event stream may be silent for long.
  response.once('close', () => void pieces.return?.());
  body.whenCut?.(() => cut(response));
  // Who left before that cannot close any more.
  let length = 0;
  if (isGone(response) || isHead) await pieces.return?.();
  else {
    // The first piece may be long in coming.
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
    // The kernel often takes a piece at once; without turns a fast reader would keep the thread to itself.
    await nextPieceTurn();
    if (isGone(response)) return length;
    const { done, value } = await pieces.next();
    if (done === true || isGone(response)) return length;
    length += value.length;
    // An empty piece only says that making the next one takes long.
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
