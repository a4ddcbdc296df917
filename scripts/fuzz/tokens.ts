// Mutated JSON Web Tokens and key sets. They run in this process.

import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import type { Random } from '../../src/common/random.js';
import { parseKeys } from '../../src/extensions/filters/http/jwt-authn/keys.js';
import { Status } from '../../src/extensions/filters/http/jwt-authn/status.js';
import { parseToken } from '../../src/extensions/filters/http/jwt-authn/token.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 200;
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const SECRET = Buffer.alloc(32, 1);
const KEYS = JSON.stringify({
  keys: [
    { ...publicKey.export({ format: 'jwk' }), kid: 'ec' },
    { kty: 'oct', k: SECRET.toString('base64url'), kid: 'oct' },
  ],
});

/** Throws a Finding when a changed token is accepted, or an input causes an exception. Returns a summary. */
export async function fuzzTokens(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const keys = parseKeys(Buffer.from(KEYS));
  if (typeof keys === 'string') throw new Finding(keys);
  const tokens = [token('ES256', 'ec'), token('HS256', 'oct'), token('HS256', undefined)];
  const originals = new Set(tokens.map(signedPart));
  const seeds = tokens.map((text) => Buffer.from(text));
  const end = performance.now() + durationMs;
  let inputs = 0;
  let parsed = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const text = mutateBytes(random, seeds, TOKENS).toString('latin1');
      const found = attempt(text, () => parseToken(text));
      const set = mutateBytes(random, [Buffer.from(KEYS)], TOKENS);
      attempt(set.toString('latin1'), () => parseKeys(set));
      if (typeof found === 'number') continue;
      parsed++;
      const status = attempt(text, () => keys.verify(found));
      if (status === Status.Ok && !originals.has(signedPart(text))) throw new Finding(`a forged token passes: ${text}`);
    }
    await new Promise(setImmediate);
  }
  return `${inputs} inputs (${parsed} tokens); no defect`;
}

function attempt<T>(input: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw new Finding(`${String(error)} for ${JSON.stringify(input)}`);
  }
}

function signedPart(text: string): string {
  return text.slice(0, text.lastIndexOf('.'));
}

function token(alg: string, kid: string | undefined): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const data = `${part({ alg, kid })}.${part({ iss: 'me', aud: ['a'], exp: 2 ** 40, nbf: 1, sub: 'x', jti: 'y' })}`;
  const signature =
    alg === 'ES256'
      ? sign('sha256', Buffer.from(data), { key: privateKey, dsaEncoding: 'ieee-p1363' })
      : createHmac('sha256', SECRET).update(data).digest();
  return `${data}.${signature.toString('base64url')}`;
}

const TOKENS = [
  ...[
    '.',
    '..',
    '=',
    'e30',
    'bnVsbA',
    '[',
    ']',
    '{"keys":[',
    '"kty":"RSA"',
    '"kty":"OKP"',
    '"crv":"Ed25519"',
    '"k":""',
    '"n":"AQAB"',
  ],
  Buffer.from('{"alg":"none"}').toString('base64url'),
  Buffer.from('{"alg":"RS256"}').toString('base64url'),
].map((text) => Buffer.from(text));
