// The frames of gRPC messages in a body: one byte of flags, four of length, and the message.

/** Bytes before a message. */
export const FRAME_HEADER_BYTES = 5;

/** Finds the frames of one body, whose pieces may begin and end anywhere. */
export class FrameScanner {
  /** Frames that have begun. */
  count = 0;
  /** Bytes of the current frame's header that have been read; 0: the next byte begins a frame. */
  #header = 0;
  /** Bytes of the current message that are still missing, once its header is complete. */
  #left = 0;

  get isBetweenFrames(): boolean {
    return this.#header === 0;
  }

  /** Reads bytes[at, end) up to the end of the current frame, or up to `end`. Returns the offset after what it has read. */
  next(bytes: Uint8Array, at: number, end: number): number {
    for (; this.#header < FRAME_HEADER_BYTES; this.#header++) {
      if (at >= end) return at;
      const byte = bytes[at++]!;
      if (this.#header > 0) this.#left = this.#left * 256 + byte;
      else this.count++;
    }
    const part = Math.min(this.#left, end - at);
    this.#left -= part;
    if (this.#left === 0) this.#header = 0;
    return at + part;
  }
}

/** Returns the header of a frame with a message of `length` bytes that is not compressed. */
export function frameHeader(length: number): Uint8Array {
  const header = new Uint8Array(FRAME_HEADER_BYTES);
  new DataView(header.buffer).setUint32(1, length);
  return header;
}
