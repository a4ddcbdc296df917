// Sends an answer: headers first, then the body as fast as the client takes it, with a turn of the loop between two pieces.

import type { ServerResponse } from 'node:http';
import type { AdminResponse, Pieces } from './admin-handler.js';

/** Resolves when all is sent or the client is gone. Rejects when the body's source throws. */
export async function sendResponse(response: ServerResponse, answer: AdminResponse, isHead: boolean): Promise<void> {
  const { status = 200, contentType = 'text/plain; charset=UTF-8', headers, body } = answer;
  response.writeHead(status, {
    'content-type': contentType,
    'cache-control': 'no-cache, max-age=0',
    'x-content-type-options': 'nosniff',
    server: 'baton',
    ...headers,
  });
  if (typeof body === 'string' || body instanceof Uint8Array) response.end(isHead ? undefined : body);
  else if (isHead) response.end();
  else await sendPieces(response, body);
}

async function sendPieces(response: ServerResponse, body: Pieces): Promise<void> {
  const pieces = Symbol.asyncIterator in body ? body[Symbol.asyncIterator]() : body[Symbol.iterator]();
  // At once, not when the next piece is there: an event stream may be silent for long.
  response.once('close', () => void pieces.return?.());
  for (;;) {
    const { done, value } = await pieces.next();
    if (done === true || response.destroyed) break;
    // An empty piece only says that making the next one takes long.
    if (value.length > 0 && !response.write(value)) await drained(response);
    // The kernel often takes a piece at once; without this turn a fast reader would keep the thread to itself.
    await nextTurn();
  }
  response.end();
}

function drained(response: ServerResponse): Promise<void> {
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

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
