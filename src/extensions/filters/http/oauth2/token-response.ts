// The response of a token endpoint (RFC 6749, 5.1), read as leniently as protobuf's JSON does.

import { FIELD_VALUE } from '../../common/field-value.js';
import { structOf } from '../jwt-authn/token.js';

/** Texts have one character for each byte; '' when absent. */
export interface Tokens {
  readonly access: string;
  readonly id: string;
  readonly refresh: string;
  readonly expiresInSeconds: number;
}

/** Why there are no tokens. Both texts are logged: unlike Envoy's they have no part of the response, which may hold tokens. */
export interface TokenFailure {
  readonly reason: string;
  /** '': nothing to add. */
  readonly extra: string;
}

/** @param defaultExpiresIn for a response without expires_in, in seconds; 0: none */
export function parseTokens(body: Buffer, defaultExpiresIn: number): Tokens | TokenFailure {
  const json = structOf(body);
  if (json === undefined) return unreadable('it is not a JSON object');
  const access = textOf(json['access_token'] ?? json['accessToken']);
  const id = textOf(json['id_token'] ?? json['idToken']);
  const refresh = textOf(json['refresh_token'] ?? json['refreshToken']);
  const expires = secondsOf(json['expires_in'] ?? json['expiresIn']);
  if (access === undefined) return unreadable('access_token is not a valid header value');
  if (id === undefined) return unreadable('id_token is not a valid header value');
  if (refresh === undefined) return unreadable('refresh_token is not a valid header value');
  if (expires === undefined) return unreadable('expires_in is not a whole number');
  if (access === null) return { reason: 'No access token found in the token exchange response', extra: '' };
  const expiresInSeconds = expires ?? defaultExpiresIn;
  if (expiresInSeconds <= 0) {
    const reason = 'No default or explicit access token expiration found in the token exchange response';
    return { reason, extra: '' };
  }
  return { access, id: id ?? '', refresh: refresh ?? '', expiresInSeconds };
}

/** Returns the status and the error (RFC 6749, 5.2) of a response without tokens, for logs. */
export function errorText(status: number, body: Buffer): string {
  const json = structOf(body) ?? {};
  const members = ['error', 'error_description'].flatMap((name) => {
    const value = json[name];
    return typeof value === 'string' ? [`${name}: ${value.slice(0, MAX_SHOWN).replace(/[^\x20-\x7e]/g, '?')}`] : [];
  });
  return [`response code: ${status}`, ...members].join(', ');
}

/** Characters of an error that logs show. */
const MAX_SHOWN = 200;

function unreadable(extra: string): TokenFailure {
  return { reason: 'Failed to parse oauth response body', extra };
}

/** Null: absent. Undefined: not a text. */
function textOf(value: unknown): string | null | undefined {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string') return undefined;
  const text = Buffer.from(value).toString('latin1');
  // Hosts could not get it as a cookie. RFC 6749, A.12 and A.17, allow only ASCII.
  return FIELD_VALUE.test(text) ? text : undefined;
}

function secondsOf(value: unknown): number | null | undefined {
  if (value === undefined || value === null) return null;
  const seconds = typeof value === 'string' && /^-?\d{1,16}$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(seconds) ? (seconds as number) : undefined;
}
