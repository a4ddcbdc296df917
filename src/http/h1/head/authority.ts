// Whether bytes are a valid "host[:port]": a Host field, the authority of an absolute target, or that of a CONNECT.

import { Char, HOST, IP_LITERAL, spanEnd } from './characters.js';

/** What isAuthority() demands of the port. */
export const enum Port {
  Optional = 0,
  Required = 1,
}

/**
 * Whether bytes[start, end) is host[:port] (RFC 3986 section 3.2 without userinfo): a registered name, an IPv4 address or
 * an IP literal in brackets; of the port only that it is digits. An empty host is none.
 */
export function isAuthority(bytes: Uint8Array, start: number, end: number, port: Port): boolean {
  let at = start;
  if (at < end && bytes[at] === Char.OpenBracket) {
    at++;
    at = spanEnd(IP_LITERAL, bytes, at, end);
    if (at === end || bytes[at] !== Char.CloseBracket || at === start + 1) return false;
    at++;
  } else {
    at = spanEnd(HOST, bytes, at, end);
    if (at === start) return false;
  }
  if (at === end) return port === Port.Optional;
  if (bytes[at] !== Char.Colon) return false;
  const portStart = ++at;
  while (at < end && bytes[at]! >= Char.Zero && bytes[at]! <= Char.Nine) at++;
  return at === end && (port === Port.Optional || at > portStart);
}
