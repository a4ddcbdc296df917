// Removes hop-by-hop header fields (RFC 9110 section 7.6.1).

import { ConnectionHeader, equalsFolded, FOLD, headerKey } from '../../../common/text/header-names.js';
import type { HeaderBlock } from '../header-block.js';

/**
 * Removes the fields of a head that are for its own connection only: Connection and the fields that it names, Keep-Alive, Proxy-Connection,
 * Upgrade, and TE except for "trailers". Fields that frame or route the message stay, even when Connection names them. With `keepUpgrade`,
 * Upgrade and Connection stay visible to filters; the codec writes its own Connection field.
 */
export function removeHopByHop(headers: HeaderBlock, keepUpgrade: boolean): void {
  if (!headers.mayHaveAny(HOP_BY_HOP)) return;
  if (headers.nominates) removeNominated(headers);
  headers.removeId(ConnectionHeader.KeepAlive);
  headers.removeId(ConnectionHeader.ProxyConnection);
  if (headers.mayHave(ConnectionHeader.Te)) reduceTe(headers);
  if (keepUpgrade) return;
  headers.removeId(ConnectionHeader.Connection);
  headers.removeId(ConnectionHeader.Upgrade);
}

const HOP_BY_HOP =
  (1 << ConnectionHeader.Connection) |
  (1 << ConnectionHeader.KeepAlive) |
  (1 << ConnectionHeader.ProxyConnection) |
  (1 << ConnectionHeader.Te) |
  (1 << ConnectionHeader.Upgrade);

/** Names that Connection cannot remove. */
const PROTECTED =
  (1 << ConnectionHeader.Host) |
  (1 << ConnectionHeader.ContentLength) |
  (1 << ConnectionHeader.TransferEncoding) |
  (1 << ConnectionHeader.Te) |
  (1 << ConnectionHeader.Trailer) |
  (1 << ConnectionHeader.Upgrade) |
  (1 << ConnectionHeader.Connection);

const TE = headerKey('te');
const TRAILERS = new TextEncoder().encode('trailers');
const FORWARDED = new TextEncoder().encode('x-forwarded-');

/**
 * Removes every field that a Connection field names. Must run before fields are added to a request, otherwise clients could remove what the
 * proxy adds. The fields of earlier proxies (x-forwarded-…) always stay.
 */
export function removeNominated(headers: HeaderBlock): void {
  headers.nominates = false;
  const { bytes } = headers.memory;
  let index = headers.findId(ConnectionHeader.Connection);
  for (; index >= 0; index = headers.findId(ConnectionHeader.Connection, index + 1)) {
    const end = headers.valueEnd(index);
    for (let at = headers.valueStart(index); at < end; ) {
      while (at < end && (bytes[at] === COMMA || isSpace(bytes[at]!))) at++;
      const start = at;
      while (at < end && bytes[at] !== COMMA) at++;
      let nameEnd = at;
      while (nameEnd > start && isSpace(bytes[nameEnd - 1]!)) nameEnd--;
      if (nameEnd > start) removeNamed(headers, start, nameEnd);
    }
  }
}

const COMMA = 44;

function isSpace(byte: number): boolean {
  return byte === 32 || byte === 9;
}

/** Removes the fields whose name is bytes[start, end). */
function removeNamed(headers: HeaderBlock, start: number, end: number): void {
  const { bytes } = headers.memory;
  for (let index = 0; index < headers.size; index++) {
    const id = headers.id(index);
    if (id < 0 || (id < 32 && ((PROTECTED >>> id) & 1) === 1)) continue;
    const nameStart = headers.nameStart(index);
    if (headers.nameEnd(index) - nameStart !== end - start) continue;
    let at = start;
    while (at < end && FOLD[bytes[at]!] === FOLD[bytes[nameStart + at - start]!]) at++;
    if (at === end && !startsWithForwarded(bytes, start, end)) headers.removeAt(index);
  }
}

function startsWithForwarded(bytes: Uint8Array, start: number, end: number): boolean {
  return equalsFolded(bytes, start, Math.min(end, start + FORWARDED.length), FORWARDED);
}

function reduceTe(headers: HeaderBlock): void {
  const { bytes } = headers.memory;
  let readsTrailers = false;
  let index = headers.findId(ConnectionHeader.Te);
  for (; index >= 0; index = headers.findId(ConnectionHeader.Te, index + 1)) {
    if (equalsFolded(bytes, headers.valueStart(index), headers.valueEnd(index), TRAILERS)) continue;
    readsTrailers ||= headers
      .value(index)
      .split(',')
      .some((each) => each.trim().toLowerCase() === 'trailers');
    headers.removeAt(index);
  }
  if (readsTrailers) headers.set(TE, 'trailers');
}
