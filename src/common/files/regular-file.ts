// Reads files whose names come from a user. Only regular files by default, because reading a pipe may never begin or end;
// pipes with a timeout where the caller allows them.

import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { blockThread } from '../time/block-thread.js';

/**
 * Returns the content of a regular file, or of one that a link leads to. With `pipeMs` also that of a pipe: the time to wait
 * for each next byte or the end, which blocks the thread.
 * @throws Error when the file cannot be read, is not a regular file, or has more than `maxBytes`
 */
export function readRegularFile(path: string, maxBytes = Number.POSITIVE_INFINITY, pipeMs?: number): Buffer {
  // Without O_NONBLOCK, opening a pipe without a writer would block.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw new Error('it is a directory');
    if (stats.isFIFO() && pipeMs !== undefined) return readPipe(descriptor, maxBytes, pipeMs);
    if (!stats.isFile()) throw new Error('it is not a regular file');
    if (stats.size > maxBytes) throw tooLarge(maxBytes);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Reads until all writers have closed the pipe. Before the first writer opens it, read() returns 0 as at the end. */
function readPipe(descriptor: number, maxBytes: number, pipeMs: number): Buffer {
  const pieces: Buffer[] = [];
  let size = 0;
  let deadline = performance.now() + pipeMs;
  for (;;) {
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    const bytes = readNow(descriptor, piece);
    if (bytes === 0 && size > 0) return Buffer.concat(pieces, size);
    if (bytes > 0) {
      pieces.push(piece.subarray(0, bytes));
      size += bytes;
      if (size > maxBytes) throw tooLarge(maxBytes);
      deadline = performance.now() + pipeMs;
    } else if (performance.now() >= deadline) {
      const what = size === 0 ? 'no process writes into the pipe' : 'the pipe does not end';
      throw new Error(`${what}: waited ${pipeMs / 1000} s`);
    } else blockThread(POLL_MS);
  }
}

/** Returns the number of bytes read; -1 if none are available yet. */
function readNow(descriptor: number, into: Buffer): number {
  try {
    return readSync(descriptor, into);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return -1;
    throw error;
  }
}

function tooLarge(maxBytes: number): Error {
  return new Error(`it is larger than ${maxBytes >> 20} MiB`);
}

const PIECE_BYTES = 64 * 1024;
const POLL_MS = 10;
