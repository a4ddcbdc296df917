// Parses JSON Web Tokens (RFC 7519) of the compact form (RFC 7515, 7.1). The signature is checked elsewhere.

import type { Json, Struct } from '../../../sdk.js';
import { Status } from './status.js';

/** Algorithms and the kind of key of each. */
export const ALGORITHMS: ReadonlyMap<string, Algorithm> = new Map(
  (['256', '384', '512'] as const).flatMap((bits): [string, Algorithm][] => [
    [`RS${bits}`, { kind: 'RSA', hash: `sha${bits}`, isPss: false }],
    [`PS${bits}`, { kind: 'RSA', hash: `sha${bits}`, isPss: true }],
    [`ES${bits}`, { kind: 'EC', hash: `sha${bits}`, isPss: false }],
    [`HS${bits}`, { kind: 'oct', hash: `sha${bits}`, isPss: false }],
  ]),
).set('EdDSA', { kind: 'OKP', hash: '', isPss: false });

export interface Algorithm {
  /** JWK's `kty`. */
  readonly kind: 'RSA' | 'EC' | 'oct' | 'OKP';
  readonly hash: string;
  readonly isPss: boolean;
}

export interface Token {
  readonly header: Struct;
  readonly payload: Struct;
  readonly alg: string;
  readonly algorithm: Algorithm;
  /** '': none. */
  readonly kid: string;
  readonly issuer: string;
  readonly subject: string;
  readonly audiences: readonly string[];
  /** Seconds since 1970; 0: absent. */
  readonly issuedAt: number;
  readonly notBefore: number;
  readonly expires: number;
  /** What is signed, and its second part. */
  readonly signed: string;
  readonly encodedPayload: string;
  readonly signature: Buffer;
}

const BASE64URL = /^[A-Za-z0-9_-]*$/;

/** Parses a token. Returns the reason if it is not one. */
export function parseToken(text: string): Token | Status {
  const [head = '', body = '', mark = '', ...rest] = text.split('.', 4);
  if (head === '' || body === '' || mark === '' || rest.length > 0) return Status.BadFormat;
  const headText = decoded(head);
  if (headText === undefined) return Status.HeaderBadBase64;
  const header = structOf(headText);
  if (header === undefined) return Status.HeaderBadJson;
  const { alg, kid } = header;
  if (typeof alg !== 'string') return Status.HeaderBadAlg;
  const algorithm = ALGORITHMS.get(alg);
  if (algorithm === undefined) return Status.HeaderUnknownAlg;
  if (kid !== undefined && typeof kid !== 'string') return Status.HeaderBadKid;
  const payloadText = decoded(body);
  if (payloadText === undefined) return Status.PayloadBadBase64;
  const payload = structOf(payloadText);
  if (payload === undefined) return Status.PayloadBadJson;
  const claims = claimsOf(payload);
  if (typeof claims === 'number') return claims;
  const signature = decoded(mark);
  if (signature === undefined) return Status.SignatureBadBase64;
  return {
    header,
    payload,
    alg,
    algorithm,
    kid: kid ?? '',
    ...claims,
    signed: `${head}.${body}`,
    encodedPayload: body,
    signature,
  };
}

type Claims = Pick<Token, 'issuer' | 'subject' | 'audiences' | 'issuedAt' | 'notBefore' | 'expires'>;

function claimsOf({ aud, exp, iat, iss, jti, nbf, sub }: Struct): Claims | Status {
  if (iss !== undefined && typeof iss !== 'string') return Status.PayloadBadIss;
  if (sub !== undefined && typeof sub !== 'string') return Status.PayloadBadSub;
  if (iat !== undefined && typeof iat !== 'number') return Status.PayloadBadIat;
  if (iat !== undefined && !isTime(iat)) return Status.PayloadNegativeIat;
  if (nbf !== undefined && typeof nbf !== 'number') return Status.PayloadBadNbf;
  if (nbf !== undefined && !isTime(nbf)) return Status.PayloadNegativeNbf;
  if (exp !== undefined && typeof exp !== 'number') return Status.PayloadBadExp;
  if (exp !== undefined && !isTime(exp)) return Status.PayloadNegativeExp;
  if (jti !== undefined && typeof jti !== 'string') return Status.PayloadBadJti;
  const audiences = audiencesOf(aud);
  if (audiences === undefined) return Status.PayloadBadAud;
  return {
    issuer: iss ?? '',
    subject: sub ?? '',
    audiences,
    issuedAt: Math.floor(iat ?? 0),
    notBefore: Math.floor(nbf ?? 0),
    expires: Math.floor(exp ?? 0),
  };
}

function audiencesOf(value: Json | undefined): readonly string[] | undefined {
  if (value === undefined) return [];
  if (typeof value === 'string') return [value];
  if (!Array.isArray(value)) return undefined;
  return value.every((each) => typeof each === 'string') ? value : undefined;
}

const MAX_TIME = 2 ** 63;

function isTime(value: number): boolean {
  return value >= 0 && value < MAX_TIME;
}

/** Decodes Base64url without padding; undefined: it is not valid. */
export function decoded(text: string): Buffer | undefined {
  // A single character of a group holds no byte.
  return BASE64URL.test(text) && text.length % 4 !== 1 ? Buffer.from(text, 'base64url') : undefined;
}

/** Parses an object; undefined: the text is not a valid JSON object, or is nested too deeply. */
export function structOf(text: Buffer): Struct | undefined {
  try {
    const value: unknown = JSON.parse(text.toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value) && isShallow(value as Json, 0)
      ? (value as Struct)
      : undefined;
  } catch {
    return undefined;
  }
}

/** As in protobuf's JSON parser. */
const MAX_DEPTH = 100;

function isShallow(value: Json, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (depth === MAX_DEPTH) return false;
  return Object.values(value).every((inner: Json) => isShallow(inner, depth + 1));
}
