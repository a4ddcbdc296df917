// Removes an invalid Referer from a request. As Envoy documents, it is invalid if it is repeated, or has a fragment or user
// information (RFC 9110 section 10.1.3 forbids these).

import { knownHeader } from '../../../common/text/header-names.js';
import type { HeaderBlock } from '../header-block.js';

const REFERER = knownHeader('referer');

export function sanitizeReferer(headers: HeaderBlock): void {
  const index = headers.findId(REFERER);
  if (index < 0) return;
  const isOne = headers.findId(REFERER, index + 1) < 0;
  if (!isOne || isSensitive(headers.memory.bytes, headers.valueStart(index), headers.valueEnd(index))) {
    headers.removeId(REFERER);
  }
}

/** Returns whether bytes[start, end) has a fragment, or an authority with '@'. */
function isSensitive(bytes: Uint8Array, start: number, end: number): boolean {
  let part: Part = Part.Scheme;
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    if (byte === HASH) return true;
    if (part === Part.Authority) {
      if (byte === AT) return true;
      if (byte === SLASH || byte === QUESTION) part = Part.Rest;
    } else if (part === Part.Scheme) {
      if (byte === SLASH || byte === QUESTION) part = Part.Rest;
      else if (byte === COLON && bytes[at + 1] === SLASH && bytes[at + 2] === SLASH) {
        part = Part.Authority;
        at += 2;
      }
    }
  }
  return false;
}

const enum Part {
  Scheme = 0,
  Authority = 1,
  Rest = 2,
}

const HASH = 35;
const SLASH = 47;
const COLON = 58;
const QUESTION = 63;
const AT = 64;
