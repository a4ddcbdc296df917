// The signed JWT by which the client authenticates itself to the token endpoint (RFC 7523, section 3).

import { createPrivateKey, type KeyObject, randomUUID, sign } from 'node:crypto';

/** How assertions are made. */
export interface AssertionRules {
  /** `RS256` … `ES512`. */
  readonly algorithm: string;
  readonly lifetimeSeconds: number;
  readonly audience: string;
}

/** The private key of a client. It is parsed once: that takes longer than a signature, and any client can cause one. */
export class ClientKey {
  #pem = '';
  #key: KeyObject | undefined;

  /** Returns the key in a PEM text; undefined if there is none. */
  of(pem: string): KeyObject | undefined {
    if (pem === this.#pem) return this.#key;
    this.#pem = pem;
    this.#key = keyOf(pem);
    return this.#key;
  }
}

/** Returns an assertion, or why there is none. */
export function clientAssertion(
  clientId: string,
  key: KeyObject | undefined,
  { algorithm, audience, lifetimeSeconds }: AssertionRules,
  nowSeconds: number,
): { readonly token: string } | { readonly failure: string } {
  if (key === undefined) return { failure: 'Failed to parse private key PEM for JWT signing' };
  const isRsa = algorithm.startsWith('RS');
  if (key.asymmetricKeyType !== (isRsa ? 'rsa' : 'ec')) {
    return { failure: `signing algorithm ${algorithm} requires an ${isRsa ? 'RSA' : 'EC'} private key` };
  }
  const head = encoded({ alg: algorithm, typ: 'JWT' });
  const id = Buffer.from(clientId, 'latin1').toString();
  const claims = encoded({
    ...{ iss: id, sub: id, aud: audience, exp: nowSeconds + lifetimeSeconds },
    ...{ iat: nowSeconds, nbf: nowSeconds, jti: randomUUID() },
  });
  const signed = `${head}.${claims}`;
  try {
    const signature = sign(`sha${algorithm.slice(2)}`, Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' });
    return { token: `${signed}.${signature.toString('base64url')}` };
  } catch {
    return { failure: 'Failed to sign JWT assertion' };
  }
}

function keyOf(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(Buffer.from(pem, 'latin1'));
  } catch {
    return undefined;
  }
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
