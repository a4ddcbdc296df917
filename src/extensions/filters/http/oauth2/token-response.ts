// The response of a token endpoint (RFC 6749, 5.1), read as leniently as protobuf's JSON does.

import { structOf } from '../jwt-authn/token.js';

/** Texts have one character for each byte; '' when absent. */
export interface Tokens {
  readonly access: string;
  readonly id: string;
  readonly refresh: string;
  readonly expiresInSeconds: number;
}

/** Why there are no tokens; the second part is for logs only. */
export interface TokenFailure {
  readonly reason: string;
  readonly extra: string;
}

/** @param defaultExpiresIn for a response without expires_in, in seconds; 0: none */
export function parseTokens(body: Buffer, defaultExpiresIn: number): Tokens | TokenFailure {
  const extra = `response body: ${body.toString('latin1')}`;
  const json = structOf(body);
  const access = json && textOf(json['access_token'] ?? json['accessToken']);
  const id = json && textOf(json['id_token'] ?? json['idToken']);
  const refresh = json && textOf(json['refresh_token'] ?? json['refreshToken']);
  const expires = json && secondsOf(json['expires_in'] ?? json['expiresIn']);
  if (access === undefined || id === undefined || refresh === undefined || expires === undefined) {
    return { reason: 'Failed to parse oauth response body', extra };
  }
  if (access === null) return { reason: 'No access token found in the token exchange response', extra };
  const expiresInSeconds = expires ?? defaultExpiresIn;
  if (expiresInSeconds <= 0) {
    const reason = 'No default or explicit access token expiration found in the token exchange response';
    return { reason, extra };
  }
  return { access, id: id ?? '', refresh: refresh ?? '', expiresInSeconds };
}

const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

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
  const seconds = typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(seconds) ? (seconds as number) : undefined;
}
