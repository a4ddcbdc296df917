// Reads files whose names come from a user: regular ones, for a pipe may never end, nor even begin, and pipes where somebody waits for
// them, but not for ever.

import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { blockThread } from '../time/block-thread.js';

/**
 * The content of a regular file, or of one that a link leads to; of a pipe too where `pipeMs` says how long to wait for its next byte, or
 * its end, which blocks the thread.
 * @throws Error when it cannot be read, is no such file, or has more than `maxBytes`
 */
export function readRegularFile(path: string, maxBytes = Number.POSITIVE_INFINITY, pipeMs?: number): Buffer {
  // A pipe without a writer would block at once otherwise.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw new Error('it is a directory');
    if (stats.isFIFO() && pipeMs !== undefined) return readPipe(descriptor, maxBytes, pipeMs);
    if (!stats.isFile()) throw new Error('it is no regular file');
    if (stats.size > maxBytes) throw tooLarge(maxBytes);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Up to where all writers have closed it. Before the first of them has opened it, it looks as if it had ended. */
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
      const what = size === 0 ? 'nobody writes into the pipe' : 'the pipe does not end';
      throw new Error(`${what}: waited ${pipeMs / 1000} s`);
    } else blockThread(POLL_MS);
  }
}

/** Bytes that are there; -1: none yet. */
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
