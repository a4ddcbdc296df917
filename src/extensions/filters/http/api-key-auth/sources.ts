// Where API keys are in requests. Keys have one character per byte.

import {
  byteText,
  decodedParameter,
  type HeaderBlock,
  type HeaderKey,
  headerKey,
  withoutParameter,
} from '../../../sdk.js';

export interface Source {
  /** Returns the key; '': there is none. */
  read(headers: HeaderBlock): string;
  /** Removes the key. */
  hide(headers: HeaderBlock): void;
}

const BEARER = 'Bearer ';
const COOKIE = headerKey('cookie');

export class HeaderSource implements Source {
  readonly #key: HeaderKey;

  constructor(key: HeaderKey) {
    this.#key = key;
  }

  /**
   * As in Envoy, a scheme may precede a key in every header, and the first of several lines counts, except in headers such as
   * `authorization`, whose lines are one value.
   */
  read(headers: HeaderBlock): string {
    const value = headers.get(this.#key) ?? '';
    return value.startsWith(BEARER) ? value.slice(BEARER.length) : value;
  }

  hide(headers: HeaderBlock): void {
    headers.remove(this.#key);
  }
}

export class QuerySource implements Source {
  readonly #name: string;

  constructor(name: string) {
    this.#name = byteText(name);
  }

  read(headers: HeaderBlock): string {
    return decodedParameter(headers.pathText(), this.#name) ?? '';
  }

  hide(headers: HeaderBlock): void {
    const path = headers.pathText();
    const changed = withoutParameter(path, this.#name);
    if (changed !== path) headers.setPath(changed);
  }
}

export class CookieSource implements Source {
  readonly #name: string;

  constructor(name: string) {
    this.#name = byteText(name);
  }

  read(headers: HeaderBlock): string {
    for (let index = headers.find(COOKIE); index >= 0; index = headers.findNext(COOKIE, index)) {
      for (const each of headers.value(index).split(';')) {
        const { name, value } = cookieOf(each);
        if (name === this.#name) return value;
      }
    }
    return '';
  }

  hide(headers: HeaderBlock): void {
    const lines: string[] = [];
    for (let index = headers.find(COOKIE); index >= 0; index = headers.findNext(COOKIE, index)) {
      const kept = headers.value(index).split(';');
      const others = kept.filter((each) => cookieOf(each).name !== this.#name);
      if (others.length > 0) lines.push(others.join(';').trim());
    }
    headers.remove(COOKIE);
    for (const line of lines) headers.add(COOKIE, line);
  }
}

function cookieOf(text: string): { readonly name: string; readonly value: string } {
  const equals = text.indexOf('=');
  if (equals < 0) return { name: '', value: '' };
  const value = text.slice(equals + 1).trimEnd();
  const isQuoted = value.length >= 2 && value.startsWith('"') && value.endsWith('"');
  return { name: text.slice(0, equals).trim(), value: isQuoted ? value.slice(1, -1) : value };
}
