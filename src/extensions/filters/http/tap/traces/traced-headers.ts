// Converts heads and trailers for traces: pseudo-headers first, as in HTTP/2.

import { type HeaderBlock, knownHeader, requestScheme } from '../../../../sdk.js';
import type { TracedHeader } from './trace.js';

const HOST = knownHeader('host');

export function tracedRequestHeaders(headers: HeaderBlock): TracedHeader[] {
  const host = headers.findId(HOST);
  const list: TracedHeader[] = [];
  if (host >= 0) list.push(traced(':authority', headers.value(host)));
  list.push(traced(':path', headers.pathText()), traced(':method', headers.methodText()));
  const scheme = requestScheme(headers);
  if (scheme !== '') list.push(traced(':scheme', scheme));
  for (let index = 0; index < headers.size; index++) {
    if (!headers.isRemoved(index) && index !== host) list.push(field(headers, index));
  }
  return list;
}

export function tracedResponseHeaders(headers: HeaderBlock): TracedHeader[] {
  return [traced(':status', String(headers.status)), ...tracedTrailers(headers)];
}

export function tracedTrailers(trailers: HeaderBlock): TracedHeader[] {
  const list: TracedHeader[] = [];
  for (let index = 0; index < trailers.size; index++) {
    if (!trailers.isRemoved(index)) list.push(field(trailers, index));
  }
  return list;
}

function field(headers: HeaderBlock, index: number): TracedHeader {
  return traced(headers.name(index), headers.value(index));
}

/** `latin1`: one character per byte. */
function traced(key: string, latin1: string): TracedHeader {
  if (isAscii(latin1)) return { key, value: latin1, raw: undefined };
  const bytes = Buffer.from(latin1, 'latin1');
  try {
    return { key, value: UTF8.decode(bytes), raw: undefined };
  } catch {
    return { key, value: '', raw: bytes };
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) return false;
  return true;
}
