// The cookies of a request, and the Set-Cookie fields of responses.

import type { CookieConfig } from '../../../../config/generated/api.js';
import { type HeaderBlock, headerKey } from '../../../sdk.js';

/** Returns the cookies of a request; of several with one name the first. */
export function readCookies(headers: HeaderBlock): Map<string, string> {
  const cookies = new Map<string, string>();
  for (let at = headers.find(COOKIE); at >= 0; at = headers.findNext(COOKIE, at)) {
    for (const part of headers.value(at).split(';')) {
      const equals = part.indexOf('=');
      if (equals < 0) continue;
      const name = part.slice(0, equals).trim();
      if (!cookies.has(name)) cookies.set(name, unquoted(part.slice(equals + 1).trim()));
    }
  }
  return cookies;
}

export function writeCookies(headers: HeaderBlock, cookies: ReadonlyMap<string, string>): void {
  headers.set(COOKIE, Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; '));
}

function unquoted(value: string): string {
  return value.length > 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}

/** Compiles Set-Cookie fields of one cookie. */
export class CookieTemplate {
  readonly name: string;
  readonly #tail: string;
  readonly #domain: string;
  readonly #path: string;
  readonly #sameSite: string;

  constructor(name: string, { partitioned, path, same_site: sameSite }: CookieConfig, domain: string) {
    this.name = name;
    this.#domain = domain === '' ? '' : `;domain=${domain}`;
    this.#path = path || '/';
    this.#sameSite = SAME_SITE[sameSite ?? 'DISABLED'];
    this.#tail = partitioned === true ? ';Partitioned' : '';
  }

  /** Returns what follows the value. */
  tail(maxAge: string): string {
    return `${this.#domain};path=${this.#path};Max-Age=${maxAge};secure;HttpOnly${this.#sameSite}${this.#tail}`;
  }

  set(value: string, maxAge: string, name: string = this.name): string {
    return `${name}=${value}${this.tail(maxAge)}`;
  }

  /** Browsers delete a cookie with one of these prefixes only if the field is `Secure`. */
  deletion(name: string = this.name): string {
    const secure = name.startsWith('__Secure-') || name.startsWith('__Host-') ? '; Secure' : '';
    return `${name}=deleted; path=${this.#path}; expires=Thu, 01 Jan 1970 00:00:00 GMT${this.#domain}${secure}`;
  }

  /** The cookie of one flow. */
  ofFlow(flow: string): string {
    return `${this.name}.${flow}`;
  }

  /** Returns whether `name` is that of the cookie, or that of one of its flows. */
  isOwn(name: string): boolean {
    return name === this.name || (name.startsWith(`${this.name}.`) && name.length > this.name.length + 1);
  }
}

const SAME_SITE = { DISABLED: '', STRICT: ';SameSite=Strict', LAX: ';SameSite=Lax', NONE: ';SameSite=None' } as const;
const COOKIE = headerKey('cookie');
