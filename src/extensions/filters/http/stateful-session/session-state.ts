// Where clients keep the address of their host: a cookie or a header.

import type {
  CookieBasedSessionState,
  HeaderBasedSessionState,
  StatefulSession,
} from '../../../../config/generated/api.js';
import {
  byteText,
  cookieAttributes,
  durationMs,
  findCookie,
  type HeaderBlock,
  type HeaderKey,
  headerKey,
  settableKey,
  unpack,
} from '../../../sdk.js';
import { addressOfCookie, addressOfHeader, cookieOf, headerOf } from './session-address.js';

export const COOKIE_STATE = 'envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState';
export const HEADER_STATE = 'envoy.extensions.http.stateful_session.header.v3.HeaderBasedSessionState';

/** The rules for one kind of state; the filters of all requests share them. */
export interface SessionState {
  /** Returns whether requests of this path have a session. */
  appliesTo(headers: HeaderBlock): boolean;
  /** Returns the address that the request names; '' if it names none. `nowMs`: since 1970. */
  read(headers: HeaderBlock, nowMs: number): string;
  /** Gives the client the address of its host. */
  write(response: HeaderBlock, address: string, nowMs: number): void;
}

/**
 * Returns undefined without a state: the filter has no effect then.
 * @param where path of the message in the configuration
 * @throws BatonError CONFIG_INVALID
 */
export function sessionState({ session_state: state }: StatefulSession, where: string): SessionState | undefined {
  const config = state?.typed_config;
  const at = `${where}session_state.typed_config`;
  const cookie = config && unpack(config, COOKIE_STATE);
  if (cookie !== undefined) return new CookieState(cookie, `${at}.cookie`);
  const header = config && unpack(config, HEADER_STATE);
  return header && new HeaderState(header);
}

const COOKIE = headerKey('cookie');
const SET_COOKIE = headerKey('set-cookie');

class CookieState implements SessionState {
  readonly #name: string;
  readonly #nameBytes: Uint8Array;
  readonly #ttlSeconds: number;
  readonly #attributes: string;
  readonly #path: string;

  constructor({ cookie = {} }: CookieBasedSessionState, where: string) {
    this.#name = cookie.name ?? '';
    this.#nameBytes = new TextEncoder().encode(this.#name);
    this.#ttlSeconds = Math.trunc(durationMs(cookie.ttl, 0) / 1000);
    this.#attributes = cookieAttributes(cookie, where);
    this.#path = byteText(cookie.path ?? '');
  }

  appliesTo(headers: HeaderBlock): boolean {
    const path = this.#path;
    if (path === '' || path === '/') return true;
    const own = headers.pathText();
    if (!own.startsWith(path)) return false;
    return path.endsWith('/') || own.length === path.length || '/?#'.includes(own[path.length]!);
  }

  read(headers: HeaderBlock, nowMs: number): string {
    const { memory } = headers;
    for (let index = headers.find(COOKIE); index >= 0; index = headers.find(COOKIE, index + 1)) {
      const [start, end] = [headers.valueStart(index), headers.valueEnd(index)];
      if (findCookie(memory.bytes, start, end, this.#nameBytes, found))
        return addressOfCookie(memory.text(found.start, found.end), Math.floor(nowMs / 1000));
    }
    return '';
  }

  write(response: HeaderBlock, address: string, nowMs: number): void {
    const expires = this.#ttlSeconds === 0 ? 0 : Math.floor(nowMs / 1000) + this.#ttlSeconds;
    response.add(SET_COOKIE, `${this.#name}="${cookieOf(address, expires)}"${this.#attributes}`);
  }
}

const found = { start: 0, end: 0 };

class HeaderState implements SessionState {
  readonly #key: HeaderKey;

  constructor({ name = '' }: HeaderBasedSessionState) {
    this.#key = settableKey(name);
  }

  appliesTo(): boolean {
    return true;
  }

  read(headers: HeaderBlock): string {
    const index = headers.find(this.#key);
    return index < 0 ? '' : addressOfHeader(headers.value(index));
  }

  write(response: HeaderBlock, address: string): void {
    response.set(this.#key, headerOf(address));
  }
}
