// The bytes allowed in the pseudo-headers of requests, as nghttp2 allows them.

import { SCHEME, spanEnd, TARGET } from '../h1/head/characters.js';

const LETTERS_AND_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Registered names, addresses in brackets, ports. Userinfo is not allowed (RFC 9113, section 8.3.1). */
const AUTHORITY = tableOf(`-._~%!$&'()*+,;=:[]${LETTERS_AND_DIGITS}`);
/** Visible bytes, and those above 127. */
const PATH = Uint8Array.from({ length: 256 }, (_, byte) => (byte > 32 && byte !== 127 ? 1 : 0));

export function isRequestAuthority(bytes: Uint8Array, start: number, end: number): boolean {
  return start < end && spanEnd(AUTHORITY, bytes, start, end) === end;
}

export function isRequestPath(bytes: Uint8Array, start: number, end: number): boolean {
  return start < end && spanEnd(PATH, bytes, start, end) === end;
}

/** Returns whether a path has neither a fragment nor bytes above 127, which hosts decode in different ways. */
export function isPlainPath(bytes: Uint8Array, start: number, end: number): boolean {
  return spanEnd(TARGET, bytes, start, end) === end;
}

export function isRequestScheme(bytes: Uint8Array, start: number, end: number): boolean {
  return start < end && isLetter(bytes[start]!) && spanEnd(SCHEME, bytes, start, end) === end;
}

function isLetter(byte: number): boolean {
  const lower = byte | 32;
  return lower >= 97 && lower <= 122;
}

function tableOf(characters: string): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => (characters.includes(String.fromCharCode(byte)) ? 1 : 0));
}
