// Tokens and key sets of hostile clients and services.

import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import t from 'tap';
import { claimText } from '../../../../src/extensions/filters/http/jwt-authn/claims.js';
import { Keys, parseKeys } from '../../../../src/extensions/filters/http/jwt-authn/keys.js';
import { Locations } from '../../../../src/extensions/filters/http/jwt-authn/locations.js';
import type { Provider } from '../../../../src/extensions/filters/http/jwt-authn/provider.js';
import {
  compileRequirement,
  type Verification,
} from '../../../../src/extensions/filters/http/jwt-authn/requirement.js';
import { Status } from '../../../../src/extensions/filters/http/jwt-authn/status.js';
import { parseToken, type Token } from '../../../../src/extensions/filters/http/jwt-authn/token.js';
import { requestHead } from '../../../http/routing/heads.js';

const encode = (value: object | string) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const parsed = (text: string) => parseToken(text) as Token;
const keysOf = (...keys: object[]) => parseKeys(Buffer.from(JSON.stringify({ keys }))) as Keys;
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ed = generateKeyPairSync('ed25519');

t.test('a public key is not accepted as the secret of an HMAC', async (t) => {
  const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' });
  const data = `${encode({ alg: 'HS256' })}.${encode({})}`;
  const forged = parsed(`${data}.${createHmac('sha256', pem).update(data).digest('base64url')}`);
  t.not(keysOf(rsa.publicKey.export({ format: 'jwk' })).verify(forged), Status.Ok);
});

t.test('a signature of another algorithm than the header names is not accepted', async (t) => {
  const keys = keysOf(ed.publicKey.export({ format: 'jwk' }));
  for (const alg of ['HS512', 'RS256', 'ES256']) {
    const data = `${encode({ alg })}.${encode({})}`;
    const signature = sign(null, Buffer.from(data), ed.privateKey).toString('base64url');
    t.equal(keys.verify(parsed(`${data}.${signature}`)), Status.VerificationFails, alg);
  }
  const data = `${encode({ alg: 'RS256' })}.${encode({})}`;
  const signed = parsed(`${data}.${sign('sha256', Buffer.from(data), rsa.privateKey).toString('base64url')}`);
  const jwk = rsa.publicKey.export({ format: 'jwk' });
  t.equal(keysOf({ ...jwk, alg: 'RS512' }).verify(signed), Status.NoMatchingKey, 'the key is for another algorithm');
  t.equal(keysOf(jwk).verify(signed), Status.Ok);
});

t.test('empty signatures and the algorithm none are not accepted', async (t) => {
  t.equal(parseToken(`${encode({ alg: 'none' })}.${encode({})}.`), Status.BadFormat);
  t.equal(parseToken(`${encode({ alg: 'None' })}.${encode({})}.eA`), Status.HeaderUnknownAlg);
  t.equal(parseToken(`${encode({ alg: '__proto__' })}.${encode({})}.eA`), Status.HeaderUnknownAlg);
});

t.test('few keys are tried for a token, and few are kept', async (t) => {
  const others = Array.from({ length: 10 }, () => ({ kty: 'oct', k: 'AAAA' }));
  const secret = Buffer.from('AQID', 'base64url');
  const data = `${encode({ alg: 'HS256' })}.${encode({})}`;
  const token = parsed(`${data}.${createHmac('sha256', secret).update(data).digest('base64url')}`);
  const right = { kty: 'oct', k: 'AQID' };
  t.equal(keysOf(...others.slice(1), right).verify(token), Status.Ok);
  t.equal(keysOf(...others, right).verify(token), Status.VerificationFails);
  const many = Array.from({ length: 100 }, () => ({ kty: 'oct', k: 'AAAA', kid: 'other' }));
  t.equal(keysOf(...many, right).verify({ ...token, kid: 'mine' }), Status.NoMatchingKey);
});

t.test('invalid key sets are refused', async (t) => {
  for (const text of ['', 'null', '[]', '{}', '{"keys":1}', '{"keys":[]}', '{"keys":[null,1,[],{"kty":"RSA","n":1}]}'])
    t.type(parseKeys(Buffer.from(text)), 'string', text);
  t.type(parseKeys(Buffer.from(`{"keys":[${'['.repeat(200)}${']'.repeat(200)}]}`)), 'string', 'nested too deeply');
  t.ok(parseKeys(Buffer.from('{"keys":[{"kty":"EC"},{"kty":"oct","k":"AAAA"}]}')) instanceof Keys);
});

t.test('payloads that are nested deeply, or name prototypes, do no harm', async (t) => {
  const deep = `{"a":${'['.repeat(200)}${']'.repeat(200)}}`;
  t.equal(parseToken(`${encode({ alg: 'RS256' })}.${encode(deep)}.eA`), Status.PayloadBadJson);
  const { payload } = parsed(`${encode({ alg: 'RS256' })}.${encode('{"__proto__":{"iss":"me"}}')}.eA`);
  t.equal(Object.getPrototypeOf(payload), Object.prototype);
  t.equal(claimText('ü'), Buffer.from('ü').toString('latin1'));
  t.equal(claimText(1e300).endsWith('.000000'), true);
});

t.test('an empty key is refused, and padding takes linear time', async (t) => {
  for (const k of ['', '=', '=='])
    t.type(parseKeys(Buffer.from(JSON.stringify({ keys: [{ kty: 'oct', k }] }))), 'string', k);
  const k = `${'='.repeat(2_000_000)}x`;
  t.type(parseKeys(Buffer.from(JSON.stringify({ keys: [{ kty: 'oct', k }] }))), 'string');
  t.ok(keysOf({ kty: 'oct', k: 'AQ==' }) instanceof Keys);
});

t.test('a request with more tokens than are verified is refused, not verified in part', async (t) => {
  const config = { issuer: 'me', from_headers: [{ name: 'x-token' }] };
  const requestWith = (count: number) => requestHead('GET /', ...Array.from({ length: count }, () => 'x-token: a.b.c'));
  t.equal(new Locations([config]).find(requestWith(8))?.length, 8);
  t.equal(new Locations([config]).find(requestWith(9)), undefined);
  const providers = new Map([['p', { config, issuer: 'me' } as unknown as Provider]]);
  for (const requirement of [{ provider_name: 'p' }, { allow_missing: {} }]) {
    const request = { countLookup() {}, headers: requestWith(9), setMetadata() {} } as unknown as Verification;
    t.equal(compileRequirement(requirement, providers, '').verify(request).next().value, Status.VerificationFails);
  }
});
