// Reads files whose names come from a user: only regular ones, for a pipe may never end, nor even begin.

import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/**
 * The content of a regular file, or of one that a link leads to.
 * @throws Error when it cannot be read, is no regular file, or has more than `maxBytes`
 */
export function readRegularFile(path: string, maxBytes = Number.POSITIVE_INFINITY): Buffer {
  // A pipe without a writer would block at once otherwise.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw new Error('it is a directory');
    if (!stats.isFile()) throw new Error('it is no regular file');
    if (stats.size > maxBytes) throw new Error(`it is larger than ${maxBytes >> 20} MiB`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
