// Reads the value of a header, a pseudo-header or a cookie from a head.

import { findCookie, type HeaderBlock, type HeaderKey, headerKey } from '../../../sdk.js';

/** Reads a value from a head, as text; undefined: it has none. remove() removes the header. */
export interface Selector {
  read(headers: HeaderBlock): string | undefined;
  remove(headers: HeaderBlock): void;
}

/** Returns a selector of `cookie`, or of `header` if `cookie` is ''. */
export function selectorOf(header: string, cookie: string): Selector {
  if (cookie !== '') return new CookieSelector(cookie);
  const name = header.toLowerCase();
  if (name === ':path') return { read: (headers) => headers.pathText() || undefined, remove() {} };
  if (name === ':method') return { read: (headers) => headers.methodText() || undefined, remove() {} };
  return new HeaderSelector(headerKey(name === ':authority' ? 'host' : name));
}

class HeaderSelector implements Selector {
  readonly #key: HeaderKey;

  constructor(key: HeaderKey) {
    this.#key = key;
  }

  /** Joins the lines of a repeated header, as Envoy does. */
  read(headers: HeaderBlock): string | undefined {
    const first = headers.find(this.#key);
    if (first < 0) return undefined;
    const values: string[] = [];
    for (let index = first; index >= 0; index = headers.findNext(this.#key, index)) values.push(headers.value(index));
    return utf8(values.join(','));
  }

  remove(headers: HeaderBlock): void {
    headers.remove(this.#key);
  }
}

const COOKIE = headerKey('cookie');
const found = { start: 0, end: 0 };

class CookieSelector implements Selector {
  readonly #name: Uint8Array;

  constructor(name: string) {
    this.#name = Buffer.from(name, 'latin1');
  }

  read(headers: HeaderBlock): string | undefined {
    const { memory } = headers;
    for (let index = headers.find(COOKIE); index >= 0; index = headers.findNext(COOKIE, index)) {
      const [start, end] = [headers.valueStart(index), headers.valueEnd(index)];
      if (!findCookie(memory.bytes, start, end, this.#name, found)) continue;
      return found.end === found.start ? undefined : utf8(memory.text(found.start, found.end));
    }
    return undefined;
  }

  remove(): void {}
}

/** Converts text with one character per byte. */
function utf8(text: string): string {
  return Buffer.from(text, 'latin1').toString();
}
