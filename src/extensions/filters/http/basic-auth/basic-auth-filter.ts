// The basic_auth filter of one request.

import {
  defineLayout,
  type HeaderBlock,
  type HeaderKey,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  ResponseFlag,
  requestScheme,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import type { Users } from './users.js';

export const BasicAuthStats = defineLayout({ allowed: 'counter', denied: 'counter' });

export interface BasicAuthRules {
  readonly credentials: HeaderKey;
  /** Gets the name of the user. */
  readonly forwarded: HeaderKey | undefined;
  readonly mayBeMissing: boolean;
  /** The namespace of the dynamic metadata that receives the user name; undefined: none does. */
  readonly namespace: string | undefined;
  readonly stats: Scope;
}

/** The users of the filter, or those of a route. */
export interface UsersOfPlace {
  readonly users: Users;
  /** '': the URL of the request. */
  readonly realm: string;
}

const SCHEME = 'Basic ';
/** As in Envoy, with or without padding. */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const HOST = headerKey('host');
const AUTHENTICATE = headerKey('www-authenticate');
/** A longer URL is cut off in the challenge. */
const MAX_REALM = 256;

export class BasicAuthFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: BasicAuthRules;
  readonly #place: UsersOfPlace;

  constructor(stream: StreamControl, rules: BasicAuthRules, place: UsersOfPlace) {
    this.#stream = stream;
    this.#rules = rules;
    this.#place = place;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { credentials, forwarded, mayBeMissing, namespace, stats } = this.#rules;
    if (forwarded !== undefined && forwarded.name !== credentials.name) headers.remove(forwarded);
    const value = credentialsOf(headers, credentials);
    if (value === undefined || !value.startsWith(SCHEME)) {
      if (mayBeMissing) return HeadersStatus.Continue;
      if (value === undefined) return this.#deny(headers, 'Missing username and password.', 'no_credential');
      return this.#deny(headers, "Expected 'Basic' authentication scheme.", 'invalid_scheme');
    }
    const encoded = value.slice(SCHEME.length).trim();
    const text = BASE64.test(encoded) ? Buffer.from(encoded, 'base64').toString('latin1') : '';
    const at = text.indexOf(':');
    if (at < 0) return this.#deny(headers, 'Invalid basic credential format.', 'invalid_format');
    const name = text.slice(0, at);
    if (!this.#place.users.accept(name, text.slice(at + 1)))
      return this.#deny(headers, 'Invalid username/password combination.', 'invalid_credential');
    if (forwarded !== undefined) headers.set(forwarded, name);
    if (namespace !== undefined)
      this.#stream.info.ownDynamicMetadata().merge(namespace, { username: Buffer.from(name, 'latin1').toString() });
    stats.increment(BasicAuthStats.at.allowed);
    return HeadersStatus.Continue;
  }

  #deny(headers: HeaderBlock, reason: string, details: string): HeadersStatus {
    const url = `${requestScheme(headers) || 'http'}://${headers.get(HOST) ?? ''}${headers.pathText()}`;
    const realm = (this.#place.realm || url.slice(0, MAX_REALM)).replace(/["\\]/g, (found) => `\\${found}`);
    this.#rules.stats.increment(BasicAuthStats.at.denied);
    this.#stream.sendLocalReply({
      status: 401,
      body: `User authentication failed. ${reason}`,
      details: `${details}_for_basic_auth`,
      flags: ResponseFlag.None,
      editHeaders: (head) => head.set(AUTHENTICATE, `Basic realm="${realm}"`),
    });
    return HeadersStatus.StopIteration;
  }
}

/** As in Envoy, several lines are one value, which is then no valid one. */
function credentialsOf(headers: HeaderBlock, key: HeaderKey): string | undefined {
  const first = headers.find(key);
  if (first < 0) return undefined;
  const isOnly = headers.findNext(key, first) < 0;
  return isOnly ? headers.value(first) : `${headers.value(first)},`;
}
