// Methods by their bytes, which are case-sensitive (RFC 9110 section 9.1).

import { METHOD_NAMES, Method } from '../../headers/header-block.js';

/** Result of methodOf() for a method that Envoy does not know. */
export const CUSTOM = -1;

/** Returns the method in the non-empty bytes[start, end). Method.Other: Envoy knows it, but Baton has no number for it. */
export function methodOf(bytes: Uint8Array, start: number, end: number): Method | typeof CUSTOM {
  const candidates = BY_FIRST_BYTE[bytes[start]!]!;
  for (let i = 0; i < candidates.length; i++) {
    const { name, method } = candidates[i]!;
    if (name.length !== end - start) continue;
    let at = 0;
    while (at < name.length && bytes[start + at] === name[at]) at++;
    if (at === name.length) return method;
  }
  return CUSTOM;
}

const METHODS: readonly (readonly [string, Method])[] = [
  ...METHOD_NAMES.map((name, index): [string, Method] => [name, index + 1]),
  // The other methods of Envoy's HTTP/1 codec, which spells MSEARCH without its hyphen.
  ...(
    'ACL BIND CHECKOUT COPY LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MOVE MSEARCH NOTIFY PROPFIND PROPPATCH PURGE ' +
    'REBIND REPORT SEARCH SOURCE SUBSCRIBE UNBIND UNLINK UNLOCK UNSUBSCRIBE'
  )
    .split(' ')
    .map((name): [string, Method] => [name, Method.Other]),
];

const encoder = new TextEncoder();
const BY_FIRST_BYTE = Array.from({ length: 256 }, (): { readonly name: Uint8Array; readonly method: Method }[] => []);
for (const [name, method] of METHODS) BY_FIRST_BYTE[name.charCodeAt(0)]!.push({ name: encoder.encode(name), method });
