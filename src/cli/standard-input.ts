// The configuration that a user pipes into the program: `-c -`.

import { messageOf } from '../common/errors/errors.js';

/** Larger texts are refused, as larger files are. */
const MAX_BYTES = 128 * 1024 * 1024;

/**
 * Reads standard input to its end, as UTF-8.
 * @param signal ends the wait; the promise rejects
 * @throws Error that says why the text cannot be used
 */
export async function readStandardInput(signal: AbortSignal): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  const input = process.stdin;
  const stop = () => void input.destroy(new Error(`caught ${signal.reason}`));
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();
  try {
    for await (const piece of input as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES >> 20} MiB`);
      pieces.push(piece);
    }
    return decode(Buffer.concat(pieces, size));
  } catch (error) {
    throw new Error(`unable to read standard input: ${messageOf(error)}`, { cause: error });
  } finally {
    signal.removeEventListener('abort', stop);
    input.destroy();
  }
}

function decode(bytes: Buffer): string {
  if (bytes.length === 0) throw new Error('it is empty');
  if (bytes.includes(0)) throw new Error('it is not UTF-8 text');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new Error('it is not UTF-8 text', { cause: error });
  }
}
