// The two fields that tell where a body ends (RFC 9112 sections 6.1 and 6.2), read literally.

import { ConnectionHeader } from '../../../common/text/header-names.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { Char } from './characters.js';

/** The number in bytes[start, end), or -1 unless it is all digits and at most 2^53 - 1. */
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

/** Value of the first Content-Length field, or -1. */
export function contentLengthOf(headers: HeaderBlock): number {
  const index = headers.findId(ConnectionHeader.ContentLength);
  if (index < 0) return -1;
  return parseContentLength(headers.memory.bytes, headers.valueStart(index), headers.valueEnd(index));
}

/** Whether what stands behind the name of a Content-Length field is exactly ": 12": one space, no zeros first. */
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
 * Whether the one Transfer-Encoding field is exactly ": chunked", as everybody reads it. In capitals, or with other spaces around it,
 * it means the same; but a peer that does not know would find another message in the body.
 */
export function saysChunked(headers: HeaderBlock): boolean {
  const index = headers.findId(ConnectionHeader.TransferEncoding);
  if (index < 0 || headers.findId(ConnectionHeader.TransferEncoding, index + 1) >= 0) return false;
  const { bytes } = headers.memory;
  let at = headers.nameEnd(index);
  if (headers.lineEnd(index) - at !== CHUNKED_LINE.length) return false;
  for (let i = 0; i < CHUNKED_LINE.length; i++) if (bytes[at++] !== CHUNKED_LINE[i]) return false;
  return true;
}

/** More are more than 2^53 - 1, or begin with zeros that nobody writes. */
const MAX_LENGTH_DIGITS = 16;
const CHUNKED_LINE = new TextEncoder().encode(': chunked\r\n');
