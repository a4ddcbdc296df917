// The body of a local reply. It is sent at once, as Envoy does, unless it is long for the memory that is left: then it is sent as the
// client takes it, a part in each turn and none while the connection is blocked. Otherwise the replies to a few hundred clients would use
// up a worker's memory.

import type { Memory } from '../../io/memory.js';

/** Bytes of a long body that are sent in one turn. */
const PART = 64 * 1024;

/** The share of the memory that is left which a body may take at once. */
const SHARE = 1 / 16;

const PIECE = 32 * 1024;

/** The stream that the body belongs to. */
export interface ReplyingStream {
  /** Sends the next part in another turn. */
  sendReplyLater(body: ReplyBody): void;
  encodeData(offset: number, length: number, endStream: boolean): void;
}

export class ReplyBody {
  readonly #stream: ReplyingStream;
  readonly #memory: Memory;
  readonly #bytes: string | Uint8Array;
  #sent = 0;
  #isBlocked = false;
  #isScheduled = false;

  /** `bytes`: a character of a string is one byte. They do not change until the body is sent. */
  constructor(stream: ReplyingStream, memory: Memory, bytes: string | Uint8Array) {
    this.#stream = stream;
    this.#memory = memory;
    this.#bytes = bytes;
  }

  /** Sends the next part. Throws NoRoomError when memory is short. */
  send(): void {
    this.#isScheduled = false;
    if (this.#isBlocked) return;
    const { length } = this.#bytes;
    const isLong = length - this.#sent > this.#memory.pressure.room * SHARE;
    const end = isLong ? Math.min(length, this.#sent + PART) : length;
    while (this.#sent < end) this.#sendPiece();
    if (end < length) this.#schedule();
  }

  blocked(): void {
    this.#isBlocked = true;
  }

  drained(): void {
    if (!this.#isBlocked) return;
    this.#isBlocked = false;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#stream.sendReplyLater(this);
  }

  #sendPiece(): void {
    const from = this.#sent;
    const length = Math.min(PIECE, this.#bytes.length - from);
    const start = this.#memory.scratch(length);
    if (typeof this.#bytes === 'string') this.#memory.write(start, this.#bytes.slice(from, from + length));
    else this.#memory.bytes.set(this.#bytes.subarray(from, from + length), start);
    // Before: the stream may be over when this returns.
    this.#sent += length;
    this.#stream.encodeData(start, length, this.#sent === this.#bytes.length);
  }
}
