// Strict parsing of the two fields that delimit a body (RFC 9112 sections 6.1 and 6.2).

import { ConnectionHeader } from '../../../common/text/header-names.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { Char } from './characters.js';

/** Returns the number in bytes[start, end), or -1 unless it is all digits and at most 2^53 - 1. */
export function parseContentLength(bytes: Uint8Array, start: number, end: number): number {
  if (start === end || end - start > MAX_LENGTH_DIGITS) return -1;
  let length = 0;
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - Char.Zero;
    if (digit < 0 || digit > 9) return -1;
    length = length * 10 + digit;
  }
  return length <= Number.MAX_SAFE_INTEGER ? length : -1;
}

/** Returns the value of the first Content-Length field, or -1. */
export function contentLengthOf(headers: HeaderBlock): number {
  const index = headers.findId(ConnectionHeader.ContentLength);
  if (index < 0) return -1;
  return parseContentLength(headers.memory.bytes, headers.valueStart(index), headers.valueEnd(index));
}

/** Returns whether a Content-Length field has the form ": 12" after its name: one space, no leading zeros. */
export function isPlainLength(headers: HeaderBlock, index: number): boolean {
  const { bytes } = headers.memory;
  const start = headers.valueStart(index);
  const end = headers.valueEnd(index);
  return (
    start - headers.nameEnd(index) === 2 &&
    bytes[start - 1] === Char.Space &&
    headers.lineEnd(index) - end === 2 &&
    (bytes[start] !== Char.Zero || end - start === 1)
  );
}

/**
 * Returns whether there is one Transfer-Encoding field and it is exactly ": chunked" after its name. In capitals or with other whitespace
 * it means the same, but a peer that does not recognize it would read another message in the body.
 */
export function isPlainChunked(headers: HeaderBlock): boolean {
  const index = headers.findId(ConnectionHeader.TransferEncoding);
  if (index < 0 || headers.findId(ConnectionHeader.TransferEncoding, index + 1) >= 0) return false;
  const { bytes } = headers.memory;
  let at = headers.nameEnd(index);
  if (headers.lineEnd(index) - at !== CHUNKED_LINE.length) return false;
  for (let i = 0; i < CHUNKED_LINE.length; i++) if (bytes[at++] !== CHUNKED_LINE[i]) return false;
  return true;
}

/** Longer numbers exceed 2^53 - 1 or have leading zeros. */
const MAX_LENGTH_DIGITS = 16;
const CHUNKED_LINE = new TextEncoder().encode(': chunked\r\n');
