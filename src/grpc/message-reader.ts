// Splits the body of a gRPC response into messages (PROTOCOL-HTTP2.md: Length-Prefixed-Message). Memory grows with the bytes that
// have arrived, not with the length that the peer announces.

import { GrpcCode, type GrpcStatus } from './status.js';

/** Compressed-Flag and Message-Length. */
export const PREFIX_BYTES = 5;
const FIRST_BYTES = 512;

export class MessageReader {
  readonly #maxBytes: number;
  /** Bytes [start, end) of the buffer are unread. Bytes that were returned are never overwritten. */
  #buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;
  /** Length of the message whose prefix was read; -1: the next bytes are a prefix. */
  #length = -1;

  /** `maxBytes`: limit of one message. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of incomplete and unread messages. */
  get bufferedBytes(): number {
    return this.#end - this.#start;
  }

  /** Appends a copy of `bytes`. */
  push(bytes: Uint8Array): void {
    if (this.#end + bytes.length > this.#buffer.length) this.#grow(bytes.length);
    this.#buffer.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /** Returns the next complete message, undefined if there is none, or the status of a call whose peer violates the protocol. */
  next(): Buffer | GrpcStatus | undefined {
    if (this.#length < 0) {
      if (this.bufferedBytes < PREFIX_BYTES) return undefined;
      const flags = this.#buffer[this.#start]!;
      const length = this.#buffer.readUInt32BE(this.#start + 1);
      if (flags !== 0) return { code: GrpcCode.Internal, details: flags === 1 ? COMPRESSED : NO_MESSAGE };
      if (length > this.#maxBytes) {
        const details = `a message of ${length} bytes is longer than the limit of ${this.#maxBytes} bytes: raise max_receive_message_length`;
        return { code: GrpcCode.ResourceExhausted, details };
      }
      this.#start += PREFIX_BYTES;
      this.#length = length;
    }
    if (this.bufferedBytes < this.#length) return undefined;
    const message = this.#buffer.subarray(this.#start, this.#start + this.#length);
    this.#start += this.#length;
    this.#length = -1;
    if (this.#start === this.#end) this.#release();
    return message;
  }

  #grow(length: number): void {
    const unread = this.bufferedBytes;
    const needed = unread + length;
    // Doubles, but not beyond the end of the message.
    const doubled = Math.max(FIRST_BYTES, 2 * unread);
    const wanted = this.#length < 0 ? doubled : Math.min(doubled, this.#length);
    const buffer = Buffer.allocUnsafeSlow(Math.max(needed, wanted));
    this.#buffer.copy(buffer, 0, this.#start, this.#end);
    this.#buffer = buffer;
    this.#start = 0;
    this.#end = unread;
  }

  /** The next message gets a buffer of its own. */
  #release(): void {
    this.#buffer = EMPTY;
    this.#start = this.#end = 0;
  }
}

/** Returns a message with its prefix. */
export function framed(message: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(PREFIX_BYTES + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}

const EMPTY = Buffer.alloc(0);
const COMPRESSED = 'a message is marked as compressed, which the call has not offered: the service must turn it off';
const NO_MESSAGE = 'the body is not a sequence of gRPC messages';
