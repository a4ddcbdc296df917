// Reads a small file, of the kernel or of another program, without ever waiting for it.

import { closeSync, constants, openSync, readSync } from 'node:fs';

const MAX_BYTES = 16 * 1024;

/** Returns the text of a file, up to 16 KiB. Throws an Error. */
export function readSmallFile(path: string): string {
  // A pipe must not block the thread.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const buffer = Buffer.allocUnsafe(MAX_BYTES);
    return buffer.toString('latin1', 0, readSync(fd, buffer));
  } finally {
    closeSync(fd);
  }
}

/** Returns the number that is all of a file. Throws an Error if it is none. */
export function readNumber(path: string): number {
  const text = readSmallFile(path).trim();
  const value = text === '' ? Number.NaN : Number(text);
  if (Number.isNaN(value)) throw new Error(`${path} is not a number`);
  return value;
}
