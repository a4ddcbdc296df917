// Methods by their bytes, which are case-sensitive (RFC 9110 section 9.1).

import { METHOD_NAMES, Method } from '../../headers/header-block.js';

/** What methodOf() gives for a method that is none of Envoy's. */
export const CUSTOM = -1;

/** The method in bytes[start, end), which is not empty; Method.Other: it is known by its name alone. */
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
  // As Envoy's HTTP/1 codec knows them, MSEARCH without its hyphen.
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
