// Decodes and encodes the chunked transfer coding (RFC 9112 section 7.1). Decoding is strict: no space around the size, no bare CR or LF,
// bounded extensions. Old hosts may put whitespace after a size, and a bare LF after data. The codec reads trailer fields with its head
// parser.

import type { Memory } from '../../io/memory.js';
import type { ByteSink } from '../codec/streams.js';
import { H1Error } from './errors.js';
import { Char, EXTENSION, HEX_VALUE } from './head/characters.js';
import type { Lines } from './lines.js';

export const enum ChunkState {
  /** No digit of the size has been read. */
  Begin = 0,
  Size = 1,
  /** In whitespace after the size. */
  Space = 2,
  Extension = 3,
  SizeLf = 4,
  /** `left` bytes of data come next. */
  Data = 5,
  DataCr = 6,
  DataLf = 7,
  /** After the chunk of size 0: a trailer section, which is often only the empty line. */
  Trailers = 8,
}

/** A size has at most 16 digits, and bodies of more than 2^53 - 1 bytes are refused. */
const MAX_SIZE_DIGITS = 16;
/** Limit for the extensions of all chunks of a message together. */
const MAX_EXTENSION_BYTES = 16384;

export class ChunkedDecoder {
  state = ChunkState.Begin;
  /** Data bytes of this chunk that are not consumed yet. */
  left = 0;
  #digits = 0;
  #extensionBytes = 0;
  #acceptsOld = false;

  /** `acceptsOld`: the syntax of old hosts is accepted. */
  begin(acceptsOld: boolean): void {
    this.#acceptsOld = acceptsOld;
    this.state = ChunkState.Begin;
    this.left = 0;
    this.#digits = 0;
    this.#extensionBytes = 0;
  }

  /**
   * Parses framing from `at` up to `end`, to data (state Data) or to the trailer section (state Trailers). Returns the offset of the first
   * unparsed byte, or a negated H1Error.
   */
  advance(bytes: Uint8Array, at: number, end: number): number {
    let state = this.state;
    while (at < end && state !== ChunkState.Data && state !== ChunkState.Trailers) {
      const byte = bytes[at]!;
      switch (state) {
        case ChunkState.Begin:
        case ChunkState.Size: {
          const digit = HEX_VALUE[byte]!;
          if (digit < 16) {
            if (++this.#digits > MAX_SIZE_DIGITS) return -H1Error.ChunkSize;
            this.left = this.left * 16 + digit;
            if (this.left > Number.MAX_SAFE_INTEGER) return -H1Error.ChunkSize;
            state = ChunkState.Size;
          } else if (state === ChunkState.Begin) return -H1Error.ChunkSize;
          else if (byte === Char.Cr) state = ChunkState.SizeLf;
          else if (byte === Char.Semicolon) state = ChunkState.Extension;
          else if (this.#acceptsOld && (byte === Char.Space || byte === Char.Tab)) state = ChunkState.Space;
          else return -H1Error.ChunkSize;
          break;
        }
        case ChunkState.Space:
          if (byte === Char.Cr) state = ChunkState.SizeLf;
          else if (byte === Char.Semicolon) state = ChunkState.Extension;
          else if (byte !== Char.Space && byte !== Char.Tab) return -H1Error.ChunkSize;
          else if (++this.#extensionBytes > MAX_EXTENSION_BYTES) return -H1Error.ChunkExtension;
          break;
        case ChunkState.Extension:
          if (byte === Char.Cr) state = ChunkState.SizeLf;
          else if (EXTENSION[byte] === 0 || ++this.#extensionBytes > MAX_EXTENSION_BYTES) {
            return -H1Error.ChunkExtension;
          }
          break;
        case ChunkState.SizeLf:
          if (byte !== Char.Lf) return -H1Error.LineEnd;
          this.#digits = 0;
          state = this.left > 0 ? ChunkState.Data : ChunkState.Trailers;
          break;
        case ChunkState.DataCr:
          if (byte === Char.Cr) state = ChunkState.DataLf;
          else if (byte === Char.Lf && this.#acceptsOld) state = ChunkState.Begin;
          else return -H1Error.ChunkEnd;
          break;
        case ChunkState.DataLf:
          if (byte !== Char.Lf) return -H1Error.ChunkEnd;
          state = ChunkState.Begin;
          break;
      }
      at++;
    }
    this.state = state;
    return at;
  }

  /** Consumes `length` bytes of data. */
  take(length: number): void {
    this.left -= length;
    if (this.left === 0) this.state = ChunkState.DataCr;
  }
}

/** Returns whether bytes[at, end) begins with the CRLF after a chunk's data, the chunk of size 0 and the empty line. */
export function endsBody(bytes: Uint8Array, at: number, end: number): boolean {
  return (
    end - at >= BODY_END_BYTES &&
    bytes[at] === Char.Cr &&
    bytes[at + 1] === Char.Lf &&
    bytes[at + 2] === Char.Zero &&
    bytes[at + 3] === Char.Cr &&
    bytes[at + 4] === Char.Lf &&
    bytes[at + 5] === Char.Cr &&
    bytes[at + 6] === Char.Lf
  );
}
export const BODY_END_BYTES = 7;

/**
 * Sends one chunk, and with `isLast` the end of the body. Sends no chunk for `length` 0, because an empty chunk ends the body. Returns the
 * number of bytes sent.
 */
export function sendChunk(
  sink: ByteSink,
  memory: Memory,
  lines: Lines,
  offset: number,
  length: number,
  isLast: boolean,
): number {
  let sent = 0;
  if (length > 0) {
    const sizeLength = hexDigits(length) + 2;
    const size = memory.scratch(sizeLength);
    writeSize(memory.bytes, size, sizeLength, length);
    sink.send(size, sizeLength);
    sink.send(offset, length);
    sent = sizeLength + length;
  }
  const tail = isLast ? (length > 0 ? lines.lastChunkAfterData : lines.lastChunk) : lines.crlf;
  if (length === 0 && !isLast) return 0;
  sink.send(tail.start, tail.length);
  return sent + tail.length;
}

function hexDigits(value: number): number {
  return (35 - Math.clz32(value)) >> 2;
}

function writeSize(bytes: Uint8Array, at: number, length: number, value: number): void {
  bytes[at + length - 2] = Char.Cr;
  bytes[at + length - 1] = Char.Lf;
  for (let digit = at + length - 3; digit >= at; digit--) {
    const low = value & 15;
    bytes[digit] = low < 10 ? Char.Zero + low : 87 + low;
    value >>>= 4;
  }
}
