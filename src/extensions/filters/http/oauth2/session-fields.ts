// The Set-Cookie fields of a session: its tokens, when it expires, and the signature of all.

import { parseToken } from '../jwt-authn/token.js';
import { chunkDeletions, tokenFields } from './chunks.js';
import type { CookieKeys } from './cipher.js';
import type { CookieTemplate } from './cookies.js';
import type { OAuthPlace } from './place.js';
import { type RequestCookies, sessionMessage } from './request-cookies.js';
import type { Tokens } from './token-response.js';

export interface Session {
  readonly fields: string[];
  /** The tokens that cookies have; '': none. */
  readonly access: string;
  readonly id: string;
}

/**
 * Returns the fields for tokens that the endpoint has issued; undefined: a token is too large.
 * @param former the refresh token that was used, and stays if there is no new one
 */
export function sessionFields(
  tokens: Tokens,
  former: string,
  cookies: RequestCookies,
  place: OAuthPlace,
  keys: CookieKeys,
): Session | undefined {
  const { rules } = place;
  const access = rules.setsAccessToken ? tokens.access : '';
  const id = rules.setsIdToken ? tokens.id : '';
  const refresh = (rules.setsRefreshToken ? tokens.refresh : '') || former;
  const nowSeconds = Math.floor(place.context.clock.realtimeMs / 1000);
  const maxAge = String(tokens.expiresInSeconds);
  const expires = String(nowSeconds + tokens.expiresInSeconds);
  const signature = keys.sign(sessionMessage(cookies.domain, expires, access, id, refresh));
  const idMaxAge = rules.idTokenExpiresWithAccess ? maxAge : lifetimeOf(tokens.id, maxAge, nowSeconds);
  const refreshMaxAge = lifetimeOf(tokens.refresh, String(rules.defaultRefreshExpiresIn), nowSeconds);
  const parts = [
    tokenPart(rules.cookies.bearer, access, maxAge, cookies, place, keys),
    tokenPart(rules.cookies.id, id, idMaxAge, cookies, place, keys),
    tokenPart(rules.cookies.refresh, refresh, refreshMaxAge, cookies, place, keys),
  ];
  if (parts.includes(undefined)) return undefined;
  for (const part of parts) if (part!.isInChunks) place.stats.oauth_token_cookie_chunked.increment();
  const fields = [
    rules.cookies.hmac.set(signature, maxAge),
    rules.cookies.expires.set(expires, maxAge),
    ...parts.flatMap((each) => each!.fields),
  ];
  return { fields, access, id };
}

interface TokenPart {
  readonly fields: readonly string[];
  readonly isInChunks: boolean;
}

/** Returns the fields of one token, and those that delete what its former cookies leave. */
function tokenPart(
  cookie: CookieTemplate,
  token: string,
  maxAge: string,
  { current, sent }: RequestCookies,
  place: OAuthPlace,
  keys: CookieKeys,
): TokenPart | undefined {
  const { rules } = place;
  if (token === '') {
    const deletions = chunkDeletions(cookie, sent, 0);
    if (current.has(cookie.name)) deletions.push(cookie.deletion());
    return { fields: deletions, isInChunks: false };
  }
  const value = rules.encrypts ? place.encrypt(token, keys) : token;
  const fields = tokenFields(cookie, value, maxAge, rules.chunks);
  if (fields === undefined) return undefined;
  if (fields.length === 1) return { fields: [...chunkDeletions(cookie, sent, 0), ...fields], isInChunks: false };
  const deletions = sent.has(cookie.name) ? [cookie.deletion()] : [];
  const chunks = chunkDeletions(cookie, sent, fields.length - 1);
  return { fields: [...deletions, ...chunks, ...fields], isInChunks: true };
}

/** Returns the remaining seconds of a JWT; `otherwise` for another token. */
function lifetimeOf(token: string, otherwise: string, nowSeconds: number): string {
  const parsed = token === '' ? 0 : parseToken(token);
  if (typeof parsed === 'number' || parsed.expires === 0) return otherwise;
  return String(Math.max(0, parsed.expires - nowSeconds));
}
