// Keys that are fetched: a fetch that fails at once or cannot begin leaves no request waiting, and the next request repeats it.

import t from 'tap';
import { jwtAuthn } from '../../../../src/extensions/filters/http/jwt-authn/index.js';
import { type FetchContext, keySourceOf } from '../../../../src/extensions/filters/http/jwt-authn/key-source.js';

const REMOTE = { remote_jwks: { http_uri: { uri: 'http://keys.test/', cluster: 'keys', timeout: '1s' } } };

/** Returns a source, and how often a request that waits for it has been notified. `reference`: of the calls. */
function sourceWith(reference: () => object) {
  const context = {
    calls: { begin() {}, reference },
    clock: { monotonicMs: 0 },
    stats: { increment() {} },
    timers: { cancel() {}, reschedule() {} },
  };
  const source = keySourceOf(REMOTE, context as unknown as FetchContext);
  let notified = 0;
  return { source, notified: () => notified, wait: () => source.wait({ onKeys: () => notified++ }) };
}

t.test('a call that throws ends the fetch', async (t) => {
  let calls = 0;
  const { notified, source, wait } = sourceWith(() => {
    calls++;
    throw new Error('no room');
  });
  wait();
  t.equal(notified(), 1);
  t.equal(source.keys, undefined);
  wait();
  t.same([calls, notified()], [2, 2], 'the next request repeats it');
});

t.test('a request of a replaced configuration does not wait forever', async (t) => {
  const { notified, source, wait } = sourceWith(() => ({ current: undefined }));
  source.close();
  wait();
  t.equal(notified(), 1);
});

t.test('a requirement needs its provider, and header names are names', async (t) => {
  const reported: string[] = [];
  const provider = {
    ...REMOTE,
    from_headers: [{ name: 'x token' }],
    claim_to_headers: [{ header_name: ':path', claim_name: 'a' }],
    forward_payload_header: 'a b',
  };
  const config = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication',
    providers: { p: provider },
    rules: [{ match: { prefix: '/' }, requires: { provider_and_audiences: { audiences: ['a'] } } }],
  };
  jwtAuthn.validate!(config as never, (path, message) => void reported.push(`${path}: ${message}`), false);
  t.match(reported, [
    /^providers\["p"\]\.from_headers\[0\]\.name: "x token" is not a valid header name/,
    /^providers\["p"\]\.claim_to_headers\[0\]\.header_name: ":path" is not a valid header name/,
    /^providers\["p"\]\.forward_payload_header: "a b" is not a valid header name/,
    "rules[0].requires.provider_and_audiences.provider_name: Required provider [''] is not configured.",
  ]);
});
