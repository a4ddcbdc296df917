// Mutated cookies, states and token responses of the oauth2 filter. They run in this process.

import type { Random } from '../../src/common/random.js';
import { Joined, joinChunks } from '../../src/extensions/filters/http/oauth2/chunks.js';
import { CookieKeys } from '../../src/extensions/filters/http/oauth2/cipher.js';
import { checkCallback, csrfToken, encodeState } from '../../src/extensions/filters/http/oauth2/login-state.js';
import { parseTokens } from '../../src/extensions/filters/http/oauth2/token-response.js';
import { isAllowed, parseUrl, QueryParameters } from '../../src/extensions/filters/http/oauth2/urls.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 100;
const KEYS = new CookieKeys('secret');
const FLOW = '0123456789abcdef';
const NONCE = csrfToken(FLOW, KEYS);
const PLAIN = 'an access token';
const PATH = `/callback?code=x&state=${encodeState('http://a.test/b?c', NONCE, FLOW)}`;
const URL_SEED = Buffer.from('https://u:p@b.a.test:8443/x?y#z');
const RESPONSE = Buffer.from('{"access_token":"a","id_token":"b","refresh_token":"c","expires_in":"77"}');
const CONTEXT = {
  keys: KEYS,
  domains: ['a.test', '*.a.test'],
  nonce: (flow: string) => (flow === FLOW ? NONCE : undefined),
};
const TOKENS = [
  '&',
  '=',
  '?',
  '%',
  '.',
  'gcm.',
  '"',
  '\\',
  '{',
  '}',
  '_chunks',
  '://',
  '[',
  '@',
  '#',
  '-1',
  '1e9',
  'null',
].map((text) => Buffer.from(text));

/** Throws a Finding when a forged input passes, or an input causes an exception. Returns a summary. */
export async function fuzzLogins(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const gcm = KEYS.encrypt(PLAIN, true);
  const seeds = [gcm, KEYS.encrypt(PLAIN, false)].map((text) => Buffer.from(text));
  const end = performance.now() + durationMs;
  let inputs = 0;
  let passed = 0;
  const text = (seed: readonly Buffer[]) => mutateBytes(random, seed, TOKENS).toString('latin1');
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const cipher = text(seeds);
      const decrypted = attempt(cipher, () => KEYS.decrypt(cipher, true));
      if ('text' in decrypted && !decrypted.isLegacy && decrypted.text !== PLAIN)
        throw new Finding(`a forged ciphertext is decrypted: ${cipher}`);
      const path = text([Buffer.from(PATH)]);
      const callback = attempt(path, () => checkCallback(path, CONTEXT));
      if (!('reason' in callback)) {
        passed++;
        if (callback.flow !== FLOW || !/(^|\.)a\.test$/.test(parseUrl(callback.url)!.host))
          throw new Finding(`a forged state passes: ${path}`);
      }
      const url = text([URL_SEED]);
      if (attempt(url, () => isAllowed(url, CONTEXT.domains)) && !/(^|\.)a\.test$/.test(browserHost(url)))
        throw new Finding(`a browser would go elsewhere: ${url}`);
      const body = mutateBytes(random, [RESPONSE], TOKENS);
      const tokens = attempt(body.toString('latin1'), () => parseTokens(body, 0));
      if ('access' in tokens && !(tokens.expiresInSeconds > 0))
        throw new Finding(`no lifetime: ${body.toString('latin1')}`);
      const count = text([Buffer.from('2')]);
      const cookies = new Map([
        ['t_chunks', count],
        ['t_0', 'a'],
        ['t_1', 'b'],
      ]);
      const joined = attempt(count, () => joinChunks(cookies, 't'));
      if (joined === Joined.Whole && cookies.get('t') !== 'ab') throw new Finding(`chunks are joined: ${count}`);
      attempt(path, () => String(QueryParameters.of(path).with({ a: 'b' })));
    }
    await new Promise(setImmediate);
  }
  return `${inputs} inputs (${passed} callbacks); no defect`;
}

/** Returns the host that a browser connects to; one that is allowed for a URL with which it connects to none. */
function browserHost(url: string): string {
  const { hostname, protocol } = URL.canParse(url) ? new URL(url) : { hostname: '', protocol: '' };
  return /^https?:$/.test(protocol) ? hostname : 'a.test';
}

function attempt<T>(input: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw new Finding(`${String(error)} for ${JSON.stringify(input)}`);
  }
}
