// Public keys of a provider: a JSON Web Key Set (RFC 7517).

import {
  constants,
  createHmac,
  createPublicKey,
  type JsonWebKey,
  type KeyObject,
  timingSafeEqual,
  verify,
} from 'node:crypto';
import type { Json, Struct } from '../../../sdk.js';
import { Status } from './status.js';
import { type Algorithm, decoded, structOf, type Token } from './token.js';

interface Key {
  readonly kind: Algorithm['kind'];
  /** '': any. */
  readonly kid: string;
  readonly alg: string;
  readonly curve: string;
  /** Undefined for `oct`. */
  readonly object: KeyObject | undefined;
  readonly secret: Buffer | undefined;
}

/** Keys of a longer set are ignored. */
const MAX_KEYS = 100;
/** Keys that are tried for one token: each costs a verification. */
const MAX_TRIES = 10;
const ED25519_SIGNATURE_BYTES = 64;
const CURVES: { readonly [alg: string]: string } = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };

export class Keys {
  readonly #keys: readonly Key[];

  constructor(keys: readonly Key[]) {
    this.#keys = keys;
  }

  /** Verifies the signature of a token. */
  verify(token: Token): Status {
    let tries = 0;
    let hasMatch = false;
    for (const key of this.#keys) {
      if (token.kid !== '' && key.kid !== '' && key.kid !== token.kid) continue;
      if (key.alg !== '' && key.alg !== token.alg) continue;
      hasMatch = true;
      // As in Envoy, whatever the algorithm is.
      if (key.kind === 'OKP' && token.signature.length !== ED25519_SIGNATURE_BYTES)
        return Status.Ed25519SignatureLength;
      if (key.kind !== token.algorithm.kind) continue;
      if (key.kind === 'EC' && key.curve !== CURVES[token.alg]) continue;
      if (++tries > MAX_TRIES) break;
      if (isSigned(token, key)) return Status.Ok;
    }
    return hasMatch ? Status.VerificationFails : Status.NoMatchingKey;
  }
}

/** Parses a key set. Returns a text if it has no usable key. */
export function parseKeys(text: Buffer): Keys | string {
  const set = structOf(text);
  if (set === undefined) return 'Jwks is an invalid JSON';
  const { keys: list } = set;
  if (list === undefined) return 'Jwks does not have [keys] field';
  if (!Array.isArray(list)) return '[keys] in Jwks is not a list';
  const keys = list
    .slice(0, MAX_KEYS)
    .map(keyOf)
    .filter((key) => key !== undefined);
  return keys.length === 0 ? "Jwks doesn't have any valid public key" : new Keys(keys);
}

/** Returns a key; undefined: it is not usable for signatures, so it is left out. */
function keyOf(value: Json): Key | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { alg = '', crv = '', k, kid = '', kty } = value as Struct;
  if (typeof alg !== 'string' || typeof kid !== 'string' || typeof crv !== 'string') return undefined;
  if (kty === 'oct') {
    const secret = typeof k === 'string' ? decoded(withoutPadding(k)) : undefined;
    // Anybody can sign with an empty secret.
    if (secret === undefined || secret.length === 0) return undefined;
    return { kind: 'oct', kid, alg, curve: '', object: undefined, secret };
  }
  if (kty !== 'RSA' && kty !== 'EC' && !(kty === 'OKP' && crv === 'Ed25519')) return undefined;
  try {
    const object = createPublicKey({ key: value as unknown as JsonWebKey, format: 'jwk' });
    return { kind: kty, kid, alg, curve: crv, object, secret: undefined };
  } catch {
    return undefined;
  }
}

/** In linear time: /=+$/ takes quadratic time for padding that is not at the end. */
function withoutPadding(text: string): string {
  let end = text.length;
  while (text[end - 1] === '=') end--;
  return text.slice(0, end);
}

/** A synchronous check: it takes some 50 µs, less than a turn of promises through a thread pool would. */
function isSigned({ algorithm, signature, signed }: Token, { kind, object, secret }: Key): boolean {
  if (secret !== undefined) {
    const expected = createHmac(algorithm.hash, secret).update(signed).digest();
    return expected.length === signature.length && timingSafeEqual(expected, signature);
  }
  const data = Buffer.from(signed);
  const key = object!;
  try {
    if (kind === 'OKP') return verify(null, data, key, signature);
    if (kind === 'EC') return verify(algorithm.hash, data, { key, dsaEncoding: 'ieee-p1363' }, signature);
    if (!algorithm.isPss) return verify(algorithm.hash, data, key, signature);
    const padding = constants.RSA_PKCS1_PSS_PADDING;
    return verify(algorithm.hash, data, { key, padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }, signature);
  } catch {
    return false;
  }
}
