// Validates "host[:port]": a Host field, the authority of an absolute target, or that of a CONNECT.

import { Char, HOST, IP_LITERAL, spanEnd, URL_HOST, URL_IP_LITERAL } from './characters.js';

/** Whether isUrlAuthority() requires a port. */
export const enum Port {
  Optional = 0,
  Required = 1,
}

/**
 * Returns whether bytes[start, end) is host[:port] (RFC 3986 section 3.2 without userinfo): a registered name, an IPv4 address or an IP
 * literal in brackets. The host must not be empty. The port must consist of digits.
 */
export function isAuthority(bytes: Uint8Array, start: number, end: number): boolean {
  const at = hostEnd(bytes, start, end, HOST, IP_LITERAL);
  if (at === start) return false;
  return at === end || (bytes[at] === Char.Colon && digitsEnd(bytes, at + 1, end) === end);
}

/** Returns whether bytes[start, end) is the host[:port] of a URL, without escapes and with a valid port number. */
export function isUrlAuthority(bytes: Uint8Array, start: number, end: number, port: Port): boolean {
  const at = hostEnd(bytes, start, end, URL_HOST, URL_IP_LITERAL);
  if (at === start) return false;
  if (at === end) return port === Port.Optional;
  const isNumber = bytes[at] === Char.Colon && end > at + 1 && digitsEnd(bytes, at + 1, end) === end;
  return isNumber && numberOf(bytes, at + 1, end) <= MAX_PORT;
}

const MAX_PORT = 65535;

/** Returns the offset after the host that bytes[start, end) begins with, or `start` if there is none. */
function hostEnd(bytes: Uint8Array, start: number, end: number, host: Uint8Array, literal: Uint8Array): number {
  if (start === end || bytes[start] !== Char.OpenBracket) return spanEnd(host, bytes, start, end);
  const at = spanEnd(literal, bytes, start + 1, end);
  return at === end || bytes[at] !== Char.CloseBracket || at === start + 1 ? start : at + 1;
}

function digitsEnd(bytes: Uint8Array, at: number, end: number): number {
  while (at < end && bytes[at]! >= Char.Zero && bytes[at]! <= Char.Nine) at++;
  return at;
}

function numberOf(bytes: Uint8Array, start: number, end: number): number {
  let number = 0;
  for (let at = start; at < end; at++) number = number * 10 + bytes[at]! - Char.Zero;
  return number;
}
