// The cookies of a request: the tokens in them are joined and decrypted, as the host gets them.

import { getLogger } from '../../../sdk.js';
import { FIELD_VALUE } from '../../common/field-value.js';
import { Joined, joinChunks } from './chunks.js';
import type { CookieKeys } from './cipher.js';
import type { CookieTemplate } from './cookies.js';
import type { OAuthPlace } from './place.js';

const logger = getLogger('oauth2');

export class RequestCookies {
  /** As the client has sent them. */
  readonly sent: ReadonlyMap<string, string>;
  /** As they are passed on. */
  readonly current: Map<string, string>;
  /** Those passed on differ from those sent. */
  readonly isChanged: boolean;
  readonly host: string;
  readonly #place: OAuthPlace;
  readonly #keys: CookieKeys;

  constructor(sent: ReadonlyMap<string, string>, place: OAuthPlace, keys: CookieKeys, host: string) {
    this.sent = sent;
    this.current = new Map(sent);
    this.host = host;
    this.#place = place;
    this.#keys = keys;
    const { bearer, id, refresh } = place.rules.cookies;
    this.isChanged = [bearer, id, refresh].map((cookie) => this.#read(cookie.name)).some(Boolean);
  }

  get access(): string {
    return this.#value(this.#place.rules.cookies.bearer);
  }

  get id(): string {
    return this.#value(this.#place.rules.cookies.id);
  }

  get refresh(): string {
    return this.#value(this.#place.rules.cookies.refresh);
  }

  /** Returns whether the cookies are signed and have not expired. */
  isLoggedIn(nowSeconds: number): boolean {
    const { cookies } = this.#place.rules;
    const expires = this.#value(cookies.expires);
    const message = sessionMessage(this.domain, expires, this.access, this.id, this.refresh);
    if (!this.#keys.verify(message, this.#value(cookies.hmac))) return false;
    return /^\d{1,15}$/.test(expires) && Number(expires) > nowSeconds;
  }

  /** The name that the signature is for. */
  get domain(): string {
    return this.#place.rules.cookieDomain || this.host;
  }

  /** Returns a cookie of a flow, or that which older versions of Envoy set instead. */
  ofFlow(cookie: CookieTemplate, flow: string): string | undefined {
    return this.current.get(cookie.ofFlow(flow)) || this.current.get(cookie.name) || undefined;
  }

  /** Replaces tokens that have been refreshed. '': the token stays. */
  replace(access: string, id: string): void {
    const { bearer, id: idToken } = this.#place.rules.cookies;
    if (access !== '') this.current.set(bearer.name, access);
    if (id !== '') this.current.set(idToken.name, id);
    this.removeFlow();
  }

  /** Removes what hosts need not know. */
  removeFlow(): void {
    const { expires, hmac, nonce, refresh, verifier } = this.#place.rules.cookies;
    for (const { name } of [hmac, expires, refresh]) this.current.delete(name);
    for (const name of this.current.keys()) if (nonce.isOwn(name) || verifier.isOwn(name)) this.current.delete(name);
  }

  /** Removes everything of the user. */
  removeTokens(): void {
    const { bearer, id } = this.#place.rules.cookies;
    this.current.delete(bearer.name);
    this.current.delete(id.name);
    this.removeFlow();
  }

  #value(cookie: CookieTemplate): string {
    return this.current.get(cookie.name) ?? '';
  }

  /** Joins and decrypts a token. Returns whether the cookies have changed. */
  #read(name: string): boolean {
    const { rules, stats } = this.#place;
    const joined = joinChunks(this.current, name);
    if (joined === Joined.Whole) stats.oauth_token_cookie_reassembled.increment();
    if (joined === Joined.Malformed) stats.oauth_token_cookie_malformed_chunks.increment();
    const value = this.current.get(name) ?? '';
    if (!rules.encrypts || value === '') return joined !== Joined.None;
    const result = this.#place.decrypt(value, this.#keys);
    const isPlain = 'text' in result && FIELD_VALUE.test(result.text);
    // A token that is not encrypted passes if its signature is right. That of one with another secret is not.
    if (!isPlain) {
      if (logger.isDebug)
        logger.debug(`a token is not decrypted: ${'failure' in result ? result.failure : 'not a value of a field'}`);
      return joined !== Joined.None;
    }
    this.current.set(name, result.text);
    return true;
  }
}

/** Returns what the signature of a session signs. */
export function sessionMessage(domain: string, expires: string, access: string, id: string, refresh: string): string {
  return `${domain}\n${expires}\n${access}\n${id}\n${refresh}`;
}
