// A request's body, whole, as long as it is not too long.

import type { AdminIncoming } from './exchange.js';

/**
 * Reads all of it. Undefined when it has more than `maxBytes`: the rest has then been read and dropped, so that a client
 * that sends first and reads afterwards sees the refusal. Rejects when the client leaves before the end.
 */
export function readBody(request: AdminIncoming, maxBytes: number): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) chunks.push(chunk);
      else chunks.length = 0;
    });
    request.on('end', () => resolve(length <= maxBytes ? Buffer.concat(chunks) : undefined));
    request.on('error', reject);
    // After the end it changes nothing.
    request.on('close', () => reject(new Error('the client has left')));
  });
}
