// Request IDs: version-4 UUIDs (RFC 9562), written directly into outgoing bytes.
//
// As in Envoy, the version nibble also encodes the trace reason; the '4' written here means that the request is not traced.

import type { Random } from '../../../common/random.js';

export const REQUEST_ID_BYTES = 36;

/** Writes a new ID in lower case to bytes[at, at + REQUEST_ID_BYTES). */
export function writeRequestId(bytes: Uint8Array, at: number, random: Random): void {
  let word = random.nextInt32();
  writeByte(bytes, at, word >>> 24);
  writeByte(bytes, at + 2, (word >>> 16) & 255);
  writeByte(bytes, at + 4, (word >>> 8) & 255);
  writeByte(bytes, at + 6, word & 255);
  bytes[at + 8] = DASH;
  word = random.nextInt32();
  writeByte(bytes, at + 9, word >>> 24);
  writeByte(bytes, at + 11, (word >>> 16) & 255);
  bytes[at + 13] = DASH;
  bytes[at + 14] = VERSION_4;
  bytes[at + 15] = LOW_DIGIT[(word >>> 8) & 255]!;
  writeByte(bytes, at + 16, word & 255);
  bytes[at + 18] = DASH;
  word = random.nextInt32();
  // The variant: two bits that are 1 and 0.
  writeByte(bytes, at + 19, 0x80 | ((word >>> 24) & 0x3f));
  writeByte(bytes, at + 21, (word >>> 16) & 255);
  bytes[at + 23] = DASH;
  writeByte(bytes, at + 24, (word >>> 8) & 255);
  writeByte(bytes, at + 26, word & 255);
  word = random.nextInt32();
  writeByte(bytes, at + 28, word >>> 24);
  writeByte(bytes, at + 30, (word >>> 16) & 255);
  writeByte(bytes, at + 32, (word >>> 8) & 255);
  writeByte(bytes, at + 34, word & 255);
}

const DASH = 45;
const VERSION_4 = 0x34;

/** ASCII of the first and of the second hexadecimal digit of a byte. */
const HIGH_DIGIT = new Uint8Array(256);
const LOW_DIGIT = new Uint8Array(256);
for (let byte = 0; byte < 256; byte++) {
  const digits = byte.toString(16).padStart(2, '0');
  HIGH_DIGIT[byte] = digits.charCodeAt(0);
  LOW_DIGIT[byte] = digits.charCodeAt(1);
}

function writeByte(bytes: Uint8Array, at: number, byte: number): void {
  bytes[at] = HIGH_DIGIT[byte]!;
  bytes[at + 1] = LOW_DIGIT[byte]!;
}
