// Sends bytes that are not in the memory of the thread.

import type { Memory } from '../../../sdk.js';

/** A socket of a client or a host. */
export interface BytesSender {
  send(offset: number, length: number): void;
}

const PIECE_BYTES = 64 * 1024;

/** Throws a NoRoomError if there is no room for them. */
export function sendBytes(memory: Memory, bytes: Uint8Array, socket: BytesSender): void {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const piece = bytes.length <= PIECE_BYTES ? bytes : bytes.subarray(at, at + PIECE_BYTES);
    const offset = memory.scratch(piece.length);
    memory.bytes.set(piece, offset);
    socket.send(offset, piece.length);
  }
}
