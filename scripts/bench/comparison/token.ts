// The token of the workload with jwt_authn, and the key set that verifies it.

import { createHmac } from 'node:crypto';

const KEY = 'a key of the benchmark, which protects nothing';
export const ISSUER = 'bench';

export const JWKS = JSON.stringify({
  keys: [{ kty: 'oct', alg: 'HS256', kid: '1', k: Buffer.from(KEY).toString('base64url') }],
});

export const TOKEN = makeToken();

function makeToken(): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  // It expires in 2100.
  const text = `${part({ alg: 'HS256', kid: '1' })}.${part({ iss: ISSUER, sub: 'ann', exp: 4_102_444_800 })}`;
  return `${text}.${createHmac('sha256', KEY).update(text).digest('base64url')}`;
}
