// oauth2: how users log in, what their cookies are, and what hosts and token endpoints get.

import { createHmac, createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import {
  type Cookies,
  cookiesOf,
  fieldsOf,
  HMAC_SECRET,
  hostCookies,
  hostHeaders,
  startLogin,
  type TokenAnswer,
} from './oauth2-login.js';

const TAIL = ';secure;HttpOnly';
const GONE = '; expires=Thu, 01 Jan 1970 00:00:00 GMT';
const B64 = '[A-Za-z0-9_-]+';
const sign = (text: string) => createHmac('sha256', HMAC_SECRET).update(text).digest('base64');
const LATER = String(Math.floor(Date.now() / 1000) + 1000);
const signed = (access = '', id = '', refresh = '', expires = LATER): Cookies => ({
  OauthHMAC: sign(['app.test', expires, access, id, refresh].join('\n')),
  OauthExpires: expires,
});
/** Unsigned tokens, as a token endpoint may issue them. */
const jwt = (claims: object) =>
  `${[{ alg: 'RS256' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.c2ln`;

besideEnvoy('a user logs in, is known by cookies, and logs out', async (t, program) => {
  const { baton, login, on, requests, lines } = await startLogin(t, program, { listeners: { main: {} } });
  const { begun, ended, flow, session, state } = await login('main', '/x?y=1&z="q"');
  const id = /^OauthNonce\.([0-9a-f]{16})$/m.exec(Object.keys(flow).join('\n'))![1]!;
  const token = `${id}.${sign(id)}`;
  const verifier = flow['CodeVerifier']!;
  t.equal(begun.status, 302);
  t.same(fieldsOf(begun), [
    `OauthNonce.${id}=${token};path=/;Max-Age=600${TAIL}`,
    `OauthNonce=${token};path=/;Max-Age=600${TAIL}`,
    `CodeVerifier.${id}=${verifier};path=/;Max-Age=600${TAIL}`,
    `CodeVerifier=${verifier};path=/;Max-Age=600${TAIL}`,
  ]);
  t.match(
    begun.headers['location'],
    new RegExp(
      `^https://auth\\.test/authorize\\?client_id=client 1&code_challenge=${B64}&code_challenge_method=S256` +
        `&redirect_uri=http%3A%2F%2Fapp\\.test%2Fcallback&response_type=code&scope=openid%20a%20b&state=${B64}` +
        '&x=1&resource=http%3A%2F%2Fr%2F%3Fa%3D1$',
    ),
  );
  const decoded = Buffer.from(state, 'base64url').toString();
  t.equal(decoded, `{"url":"http://app.test/x?y=1&z=\\"q\\"","csrf_token":"${token}","flow_id":"${id}"}`);
  t.equal(requests[0]!.path, '/oauth/token');
  t.match(requests[0]!.headers, {
    host: 'token.test',
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
  });
  t.match(
    requests[0]!.body,
    new RegExp(
      '^grant_type=authorization_code&code=CO%20DE&client_id=client 1&client_secret=tok%3Dsec%26ret' +
        `&redirect_uri=http%3A%2F%2Fapp\\.test%2Fcallback&code_verifier=${B64}$`,
    ),
  );
  const expires = session['OauthExpires']!;
  const hmac = sign(['app.test', expires, 'ACC', 'IDT', 'REF'].join('\n'));
  t.match(ended, { status: 302, headers: { location: 'http://app.test/x?y=1&z="q"' } });
  const deletions = [`OauthNonce.${id}`, 'OauthNonce', `CodeVerifier.${id}`, 'CodeVerifier'].map(
    (name) => `${name}=deleted; path=/${GONE}`,
  );
  t.same(fieldsOf(ended), [
    `OauthHMAC=${hmac};path=/;Max-Age=3600${TAIL}`,
    `OauthExpires=${expires};path=/;Max-Age=3600${TAIL}`,
    `BearerToken=${session['BearerToken']};path=/;Max-Age=3600${TAIL}`,
    `IdToken=${session['IdToken']};path=/;Max-Age=3600${TAIL}`,
    `RefreshToken=${session['RefreshToken']};path=/;Max-Age=604800${TAIL}`,
    ...deletions,
  ]);
  t.notMatch(ended.headers['set-cookie']!.toString(), /ACC|IDT|REF/, 'tokens are encrypted');
  const known = await on('main', '/y', { a: '1', ...session, ...flow, b: '2' }, { authorization: 'mine' });
  t.same(hostCookies(known), ['BearerToken=ACC', 'IdToken=IDT', 'a=1', 'b=2']);
  t.equal(hostHeaders(known)['authorization'], undefined);
  t.same(fieldsOf(known), []);
  const again = await on('main', `/callback?code=C&state=${state}`, { ...session, ...flow });
  t.match(again, { status: 302, headers: { location: 'http://app.test/x?y=1&z="q"' } });
  t.same(fieldsOf(again), deletions);
  const out = await on('main', '/signout?now', { ...session, OauthNonce: 'n' });
  t.match(out, { status: 302, headers: { location: 'http://app.test/' } });
  t.same(
    fieldsOf(out),
    ['OauthHMAC', 'BearerToken', 'IdToken', 'RefreshToken', 'OauthExpires', 'OauthNonce'].map(
      (name) => `${name}=deleted; path=/${GONE}`,
    ),
  );
  const stranger = await on('main', '/y', { ...session, OauthExpires: '1' });
  t.equal(stranger.status, 200, 'the refresh token renews the session');
  await baton.waitForStats({ 'http.main.oauth_success': 4, 'http.main.oauth_unauthorized_rq': 1 });
  t.same(
    await lines(6),
    ['missing_credentials', 'logged_in', '', 'race_redirect', 'sign_out', ''].map((each) =>
      each === '' ? '200 via_upstream' : `302 oauth.${each}`,
    ),
  );
});

/** Made by Envoy 1.40 and by Baton for app.example, with AES-256-CBC and AES-256-GCM; they expire in 2153. */
const MADE: readonly Cookies[] = [
  {
    OauthHMAC: 'UisC/LS12iDQP6cGpAvgA3ni0Pzh5CGEObTYCAjbHMo=',
    OauthExpires: '5796080118',
    BearerToken: 'qXYJXpkK1ATvtd8Hf2zqGUluMS4e69TZMS0cD5l7yC8',
    IdToken: 'hZ4xLojzBj08zlBI6638JGsOaQ6Wld4MO1YtNkBa0DU',
    RefreshToken: 'hlTVi8Ppy0t2Nk4e17XyaDY67fc6JqZU6tecmGb3qaw',
  },
  {
    OauthHMAC: 'UisC/LS12iDQP6cGpAvgA3ni0Pzh5CGEObTYCAjbHMo=',
    OauthExpires: '5796080118',
    BearerToken: 'gcm.ylgDCrYC-tg4PckxWJYvR08aNOnJqlGEv0E6hF71WlOvJIcIy7H1AQ',
    IdToken: 'gcm.AkjLexgnw9sh7DwB7dmlXSQRtYH9ARoy9BK0NRQ0H0SumwyN',
    RefreshToken: 'gcm.jmmZdXhlR_86ymgV7UHdhSE8-HkhLdRbjEjYtrqdnmo7M0fIu1aiBfg',
  },
  {
    OauthHMAC: 'j9u/HSJaacM1aiEcBXUXJuQ/N0IT23Eaw2i7HRWhXgo=',
    OauthExpires: '5796080170',
    BearerToken: 'wKQBXi_mQKUAfDoce5yUESgd71lQyodbR-JUjpgy9wM',
    IdToken: 'R6bKBWcg1ht5yHjTSUndS6nVpgLuhdVobZasLzO2kVM',
    RefreshToken: 'RG_IddYlCXBz7Kis-8-IQkJQTIJ-VO3otoPKUV30wt4',
  },
  {
    OauthHMAC: 'xV4Fdr/dsn+ImxqzLgjTsn/525n/Jx6zhwNdT2TyOgQ=',
    OauthExpires: '5796080171',
    BearerToken: 'gcm.3Mbbv9DT_24qugd_P0c--1RFbj4dCLtSMjzd1sDCEATsPbrym_zXEA',
    IdToken: 'gcm.hdaLIjgdGb6ZnfSTlQdduzNNQg2Dp5_wyhRMlXIUkFjT6zCr',
    RefreshToken: 'gcm.9l-i8Nib27kUAmIvkw-WPjwgR9HsxIcWqjreSSjKuKCVMymlrRlUDZQ',
  },
];

besideEnvoy('Baton and Envoy accept the cookies of each other', async (t, program) => {
  const { on } = await startLogin(t, program, { listeners: { main: { forward_bearer_token: true } } });
  for (const cookies of MADE) {
    const answer = await on('main', '/', cookies, { host: 'app.example' });
    t.same(hostCookies(answer), ['BearerToken=access-token', 'IdToken=id-token']);
    t.equal(hostHeaders(answer)['authorization'], 'Bearer access-token');
    for (const changed of [{ OauthExpires: '5796080119' }, { IdToken: '' }] as Cookies[]) {
      const refused = await on('main', '/', { ...cookies, ...changed, RefreshToken: '' }, { host: 'app.example' });
      t.equal(refused.status, 302, `${Object.keys(changed)} is signed`);
    }
    t.equal((await on('main', '/', { ...cookies, RefreshToken: '' })).status, 302, 'the host is signed');
  }
  t.equal((await on('main', '/', { ...signed(), OauthHMAC: hexSigned() })).status, 200, 'of older versions of Envoy');
});

function hexSigned(): string {
  const text = ['app.test', LATER, '', '', ''].join('\n');
  return Buffer.from(createHmac('sha256', HMAC_SECRET).update(text).digest('hex')).toString('base64');
}

besideEnvoy('a forged or broken callback is refused', async (t, program) => {
  const { baton, lines, on, requests } = await startLogin(t, program, {
    listeners: { main: { allow_failed_matcher: [{ name: 'x-allow', present_match: true }] } },
  });
  const flow = '0123456789abcdef';
  const csrf_token = `${flow}.${sign(flow)}`;
  const good = { url: 'http://app.test/a?b', csrf_token, flow_id: flow };
  const encoded = (state: unknown) =>
    Buffer.from(typeof state === 'string' ? state : JSON.stringify(state)).toString('base64url');
  const nonce = { [`OauthNonce.${flow}`]: csrf_token };
  const verifier = (text: string) => ({ ...nonce, [`CodeVerifier.${flow}`]: text });
  const zeros = (bytes: number) => Buffer.alloc(bytes).toString('base64url');
  const state = encoded(good);
  // Query, cookies, details, deleted cookies.
  const cases: [string, Cookies, string, number][] = [
    ['', {}, 'Code or state query param does not exist: ', 0],
    ['?code=x&q', {}, 'Code or state query param does not exist: ?code=x&q=', 0],
    [`?error=x&b=y%20z&state=${state}`, nonce, `OAuth server returned an error: ?b=y%20z&error=x&state=${state}`, 4],
    ['?error=x', {}, 'OAuth server returned an error: ?error=x', 0],
    ['?code=x&state=$$$', {}, 'State query param is not a valid JSON: ', 0],
    [`?code=x&state=${encoded('nojson')}`, {}, 'State query param is not a valid JSON: nojson', 0],
    [`?code=x&state=${encoded('[]')}`, {}, 'State query param is not a valid JSON: []', 0],
    [
      `?code=x&state=${encoded({ csrf_token: 'a' })}`,
      {},
      'State query param does not contain url or CSRF token: {"csrf_token":"a"}',
      0,
    ],
    [`?code=x&state=${state}`, {}, 'CSRF token validation failed', 0],
    [`?code=x&state=${encoded({ ...good, csrf_token: `${flow}.a` })}`, nonce, 'CSRF token validation failed', 0],
    [
      `?code=x&state=${encoded({ ...good, csrf_token: `${flow}.a` })}`,
      { [`OauthNonce.${flow}`]: `${flow}.a` },
      'CSRF token validation failed',
      0,
    ],
    [`?code=x&state=${encoded({ ...good, url: 'foo' })}`, nonce, 'State url can not be initialized: foo', 4],
    [`?code=x&state=${encoded({ ...good, url: '//a/b' })}`, nonce, 'State url can not be initialized: //a/b', 4],
    // A browser would go to evil.test.
    ...['https://evil.test\\@app.test/', 'https://evil.test\\.app.test/'].map((url): (typeof cases)[number] => [
      `?code=x&state=${encoded({ ...good, url })}`,
      nonce,
      `State url can not be initialized: ${url}`,
      4,
    ]),
    [`?code=x&state=${state}`, nonce, 'Code verifier cookie is missing in the request', 4],
    [`?code=x&state=${state}`, { OauthNonce: csrf_token }, 'Code verifier cookie is missing in the request', 4],
    [
      `?code=x&state=${state}`,
      verifier('abc'),
      'Failed to decrypt code verifier: abc, error: Invalid encrypted data',
      4,
    ],
    [
      `?code=x&state=${state}`,
      verifier(zeros(32)),
      `Failed to decrypt code verifier: ${zeros(32)}, error: failed to finalize decryption`,
      4,
    ],
    [
      `?code=x&state=${state}`,
      verifier(`gcm.${zeros(40)}`),
      `Failed to decrypt code verifier: gcm.${zeros(40)}, error: failed to finalize decryption`,
      4,
    ],
  ];
  for (const [query, cookies, , deleted] of cases) {
    const answer = await on('main', `/callback${query}`, cookies, { 'x-allow': '1' });
    t.match(answer, { status: 401, body: 'OAuth flow failed.' });
    t.equal(fieldsOf(answer).length, deleted, query);
  }
  t.same(
    await lines(cases.length),
    cases.map(([, , details]) => `401 ${details.replace(/\s/g, '_')}`),
  );
  const loop = encoded({ ...good, url: 'http://app.test/callback?x' });
  t.equal((await on('main', `/callback?code=x&state=${loop}`, { ...signed(), ...nonce })).status, 401);
  t.equal(requests.length, 0);
  await baton.waitForStats({ 'http.main.oauth_failure': cases.length + 1 });
});

t.test('only a flow that is signed names cookies', async (t) => {
  const { lines, on } = await startLogin(t, { command: undefined }, { listeners: { main: {} } });
  const csrf_token = `0123456789abcdef.${sign('0123456789abcdef')}`;
  for (const flow_id of ['other', 'x; domain=test', 'x\r\na: b', '0123456789abcde']) {
    const state = { url: 'http://app.test/', csrf_token, flow_id };
    const query = `code=x&state=${Buffer.from(JSON.stringify(state)).toString('base64url')}`;
    const answer = await on('main', `/callback?${query}`, { OauthNonce: csrf_token });
    t.match(answer, { status: 401, body: 'OAuth flow failed.' });
    t.same(fieldsOf(answer), []);
  }
  const shown = Buffer.from('"\x1b[31m\t"').toString('base64url');
  await on('main', `/callback?code=x&state=${shown}`);
  t.same(await lines(5), [
    ...Array(4).fill('401 CSRF_token_validation_failed'),
    '401 State_query_param_is_not_a_valid_JSON:_"_[31m_"',
  ]);
});

t.test('no token gets into a log', async (t) => {
  const { baton, lines, login, on, state } = await startLogin(t, { command: undefined }, { listeners: { main: {} } });
  const cases: [TokenAnswer, string][] = [
    [
      { body: { access_token: 'TOPSECRET' } },
      'No default or explicit access token expiration found in the token exchange response',
    ],
    [{ body: { id_token: 'TOPSECRET' } }, 'No access token found in the token exchange response'],
    [
      { body: { access_token: 'TOPSECRET', expires_in: 'soon' } },
      'Failed to parse oauth response body: expires_in is not a whole number',
    ],
    [
      { body: { access_token: 'TOPSECRET\n', expires_in: 9 } },
      'Failed to parse oauth response body: access_token is not a valid header value',
    ],
    [{ body: 'access_token=TOPSECRET' }, 'Failed to parse oauth response body: it is not a JSON object'],
    [{ status: 201, body: { access_token: 'TOPSECRET' } }, 'Failed to get access token: response code: 201'],
    [
      { status: 400, body: { error: 'invalid_grant', error_description: 'used\n', id_token: 'TOPSECRET' } },
      'Failed to get access token: response code: 400, error: invalid_grant, error_description: used?',
    ],
    [undefined, 'Failed to get access token: response code: 503, it has closed the connection without an answer'],
  ];
  for (const [answer] of cases) {
    state.answer = answer;
    t.equal((await login('main')).ended.status, 401);
  }
  const details = cases.map(([, text]) => `401 ${text.replace(/\s/g, '_')}`);
  t.same(
    (await lines(2 * cases.length)).filter((line) => line.startsWith('401')),
    details,
  );
  state.answer = { status: 400, body: { error: 'invalid_grant' } };
  t.equal((await on('main', '/', { RefreshToken: 'TOPSECRET' })).status, 302);
  t.match(baton.stderr, /Cause: Failed to get access token: response code: 400, error: invalid_grant/);
  t.notMatch(baton.stderr, /TOPSECRET/);
});

besideEnvoy('requests that need no login, may fail, or must not be redirected', async (t, program) => {
  const present = (name: string) => [{ name, present_match: true }];
  const { baton, on, state } = await startLogin(t, program, {
    listeners: {
      main: {
        pass_through_matcher: present('x-pass'),
        deny_redirect_matcher: present('x-deny'),
        allow_failed_matcher: present('x-allow'),
        forward_id_token: { header: 'X-Id' },
      },
    },
  });
  const spoofed = { 'x-envoy-oauth-status': 'ok', 'x-envoy-oauth-failure-reason': 'none', 'x-id': 'me' };
  const passed = await on('main', '/p', { OauthHMAC: 'x' }, { ...spoofed, 'x-pass': '1', authorization: 'mine' });
  t.same(hostCookies(passed), ['OauthHMAC=x']);
  t.match(hostHeaders(passed), { authorization: 'mine' });
  t.notMatch(Object.keys(hostHeaders(passed)), /x-envoy-oauth|x-id/);
  t.match(await on('main', '/d', {}, { 'x-deny': '1' }), { status: 401, body: 'OAuth flow failed.' });
  const user = { BearerToken: 'b', IdToken: 'i', OauthNonce: 'n', 'OauthNonce.1': 'x', CodeVerifier: 'c', keep: '1' };
  const failed = await on('main', '/f', user, { ...spoofed, 'x-allow': '1', 'x-deny': '1', authorization: 'mine' });
  t.same(hostCookies(failed), ['keep=1']);
  t.match(hostHeaders(failed), {
    'x-envoy-oauth-status': 'failed',
    'x-envoy-oauth-failure-reason': 'Unauthorized, and forwarding as unauthorized because OAuth failure is allowed: /f',
  });
  t.equal(hostHeaders(failed)['x-id'], undefined);
  t.equal(hostHeaders(failed)['authorization'], undefined);
  state.answer = { status: 500, body: '' };
  const unrefreshed = await on('main', '/f', { RefreshToken: 'r' }, { 'x-allow': '1' });
  t.match(hostHeaders(unrefreshed), {
    'x-envoy-oauth-failure-reason':
      'Failed to refresh the access token, and forwarding as unauthorized because OAuth failure is allowed',
  });
  t.equal((await on('main', '/f', { RefreshToken: 'r' }, { 'x-deny': '1' })).status, 401);
  t.equal((await on('main', '/f', { RefreshToken: 'r' })).status, 302);
  await baton.waitForStats({
    'http.main.oauth_passthrough': 1,
    'http.main.oauth_allow_failed_passthrough': 2,
    'http.main.oauth_refreshtoken_failure': 3,
    'http.main.oauth_failure': 2,
  });
});

besideEnvoy('an expired session is renewed by its refresh token', async (t, program) => {
  const { baton, on, requests, state } = await startLogin(t, program, {
    listeners: {
      main: { forward_bearer_token: true, disable_token_encryption: true, forward_id_token: { header: 'x-id' } },
      never: { use_refresh_token: false },
    },
  });
  state.answer = { body: { access_token: 'new', expires_in: 100 } };
  const answer = await on('main', '/', { RefreshToken: 'r/1', IdToken: 'old', q: '1', OauthHMAC: 'x' });
  t.same(hostCookies(answer), ['BearerToken=new', 'IdToken=old', 'q=1']);
  t.equal(hostHeaders(answer)['authorization'], 'Bearer new');
  t.equal(hostHeaders(answer)['x-id'], undefined);
  t.equal(
    requests[0]!.body,
    'grant_type=refresh_token&refresh_token=r%2F1&client_id=client 1&client_secret=tok%3Dsec%26ret',
  );
  const { OauthExpires: expires } = cookiesOf(answer);
  t.same(fieldsOf(answer), [
    `OauthHMAC=${sign(['app.test', expires, 'new', '', 'r/1'].join('\n'))};path=/;Max-Age=100${TAIL}`,
    `OauthExpires=${expires};path=/;Max-Age=100${TAIL}`,
    `BearerToken=new;path=/;Max-Age=100${TAIL}`,
    `IdToken=deleted; path=/${GONE}`,
    `RefreshToken=r/1;path=/;Max-Age=604800${TAIL}`,
  ]);
  state.answer = { body: { access_token: 'a', id_token: 'i', refresh_token: 's', expires_in: '9' } };
  t.equal(hostHeaders(await on('main', '/', { RefreshToken: 'r' }))['x-id'], 'i');
  t.equal((await on('never', '/', { RefreshToken: 'r' })).status, 302);
  await baton.waitForStats({ 'http.main.oauth_refreshtoken_success': 2, 'http.never.oauth_refreshtoken_success': 0 });
});

besideEnvoy('unusable answers of the token endpoint', async (t, program) => {
  const { login, state } = await startLogin(t, program, { listeners: { main: {} } });
  for (const [body, status] of [
    ['nope', 401],
    ['{"id_token":"x"}', 401],
    ['{"access_token":"x"}', 401],
    ['{"access_token":"x","expires_in":-1}', 401],
    ['{"access_token":"x","expires_in":7.5}', 401],
    ['{"access_token":5,"expires_in":7}', 401],
    ['{"access_token":null,"expires_in":7}', 401],
    ['{"access_token":"x","expires_in":"7"}', 302],
    ['{"access_token":"x","expires_in":"9007199254740991"}', 302],
    ['{"access_token":"x","expires_in":7.0}', 302],
    ['{"accessToken":"x","expiresIn":7,"other":{"a":[1]}}', 302],
    ['{"access_token":"","expires_in":7}', 302],
  ] as const) {
    state.answer = { body };
    const { ended } = await login('main');
    t.equal(ended.status, status, body);
    if (status === 401) t.equal(fieldsOf(ended).length, 4);
  }
  for (const answer of [undefined, { status: 500, body: 'x' }, { status: 201, body: { access_token: 'x' } }]) {
    state.answer = answer;
    t.match((await login('main')).ended, { status: 401, body: 'OAuth flow failed.' });
  }
});

besideEnvoy('names, paths, domains and lifetimes of cookies are as configured', async (t, program) => {
  const { baton, login, on, state } = await startLogin(t, program, {
    listeners: {
      main: {
        stat_prefix: 'mine',
        cookie_configs: {
          bearer_token_cookie_config: { same_site: 'STRICT', path: '/b' },
          oauth_hmac_cookie_config: { same_site: 'LAX', partitioned: true },
          oauth_nonce_cookie_config: { same_site: 'NONE', path: '/n', partitioned: true },
          code_verifier_cookie_config: { path: '/v' },
        },
        credentials: {
          ...{ client_id: 'cid', token_secret: { name: 'token' }, hmac_secret: { name: 'hmac' } },
          cookie_domain: 'app.test',
          cookie_names: { bearer_token: '__Secure-b', oauth_hmac: '__Host-h', oauth_nonce: '__Host-n' },
        },
        csrf_token_expires_in: '77.9s',
        code_verifier_token_expires_in: '5s',
        default_refresh_token_expires_in: '33s',
        default_expires_in: '44s',
      },
      plain: { disable_token_encryption: true },
      bare: {
        ...{ disable_access_token_set_cookie: true, disable_id_token_set_cookie: true },
        disable_refresh_token_set_cookie: true,
      },
      same: { use_access_token_expiry_for_id_token_cookie: true, use_refresh_token: false },
    },
  });
  state.answer = { body: { access_token: 'a', refresh_token: 'r', id_token: 'i' } };
  const { begun, ended, session } = await login('main');
  const shown = (fields: string[]) => fields.map((field) => field.replace(/=[^;]*;/, ';'));
  const domain = ';domain=app.test';
  const none = `;path=/n;Max-Age=77${TAIL};SameSite=None;Partitioned`;
  const id = /__Host-n\.(\w+)/.exec(fieldsOf(begun)[0]!)![1]!;
  t.same(shown(fieldsOf(begun)), [
    `__Host-n.${id};domain=app.test${none}`,
    `__Host-n;domain=app.test${none}`,
    `CodeVerifier.${id}${domain};path=/v;Max-Age=5${TAIL}`,
    `CodeVerifier${domain};path=/v;Max-Age=5${TAIL}`,
  ]);
  t.same(shown(fieldsOf(ended)), [
    `__Host-h${domain};path=/;Max-Age=44${TAIL};SameSite=Lax;Partitioned`,
    `OauthExpires${domain};path=/;Max-Age=44${TAIL}`,
    `__Secure-b${domain};path=/b;Max-Age=44${TAIL};SameSite=Strict`,
    `IdToken${domain};path=/;Max-Age=44${TAIL}`,
    `RefreshToken${domain};path=/;Max-Age=33${TAIL}`,
    `__Host-n.${id}; path=/n${GONE}${domain}; Secure`,
    `__Host-n; path=/n${GONE}${domain}; Secure`,
    `CodeVerifier.${id}; path=/v${GONE}${domain}`,
    `CodeVerifier; path=/v${GONE}${domain}`,
  ]);
  t.equal((await on('main', '/', session, { host: 'other.test' })).status, 200, 'the domain is signed, not the host');
  await baton.waitForStats({ 'http.main.mine.oauth_success': 2 });
  const now = Math.floor(Date.now() / 1000);
  const tokens = { access_token: 'A', id_token: jwt({ exp: now + 9000 }), refresh_token: jwt({ exp: now + 9000 }) };
  state.answer = { body: { ...tokens, expires_in: 100 } };
  const plain = (await login('plain')).ended;
  t.match(fieldsOf(plain)[2], /^BearerToken=A;path=\/;Max-Age=100;/);
  for (const at of [3, 4])
    t.match(fieldsOf(plain)[at], /^(IdToken|RefreshToken)=\S+\.c2ln;path=\/;Max-Age=(8999|9000);/);
  t.same(Object.keys((await login('bare')).session), ['OauthHMAC', 'OauthExpires']);
  const same = await login('same');
  t.same(Object.keys(same.session), ['OauthHMAC', 'OauthExpires', 'BearerToken', 'IdToken']);
  t.match(fieldsOf(same.ended)[3], /;Max-Age=100;/);
  state.answer = { body: { access_token: 'A', refresh_token: jwt({ exp: now - 5 }), expires_in: 100 } };
  t.match(fieldsOf((await login('plain')).ended)[3], /^RefreshToken=\S+;Max-Age=0;/);
});

besideEnvoy('large tokens are split, if so configured', async (t, program) => {
  const limits = { max_cookie_size: 512, max_chunks: 2 };
  const { baton, login, on, state } = await startLogin(t, program, {
    listeners: { main: { token_cookie_chunking: limits, disable_token_encryption: true }, off: {} },
  });
  const issue = (access: number, id: number, more = {}) => {
    state.answer = { body: { access_token: 'A'.repeat(access), id_token: 'I'.repeat(id), expires_in: 100, ...more } };
  };
  const sizes = (fields: string[]) =>
    fields
      .filter((field) => /^(Bearer|Id|Refresh)/.test(field))
      .map((field) => `${/^\w+/.exec(field)![0]} ${field.length}`);
  issue(465, 0);
  t.same(sizes(fieldsOf((await login('main')).ended)), ['BearerToken 512']);
  issue(466, 600);
  const { ended, session } = await login('main');
  t.same(sizes(fieldsOf(ended)), [
    ...['BearerToken_0 511', 'BearerToken_1 53', 'BearerToken_chunks 55'],
    ...['IdToken_0 511', 'IdToken_1 179', 'IdToken_chunks 51'],
  ]);
  const both = [`BearerToken=${'A'.repeat(466)}`, `IdToken=${'I'.repeat(600)}`];
  t.same(hostCookies(await on('main', '/', session)), both);
  const deleted = (fields: string[]) => fields.map((field) => /^\w+(?==deleted)/.exec(field)?.[0]).filter(Boolean);
  const out = ['OauthHMAC', 'BearerToken', 'IdToken', 'RefreshToken', 'OauthExpires'];
  t.same(deleted(fieldsOf(await on('main', '/signout', session))), [
    ...out,
    ...['BearerToken_chunks', 'BearerToken_0', 'BearerToken_1', 'IdToken_chunks', 'IdToken_0', 'IdToken_1'],
  ]);
  const broken = { ...session, BearerToken_1: '', BearerToken_chunks: '3' };
  t.equal(fieldsOf(await on('main', '/signout', broken)).length, out.length + 17 + 3);
  issue(1, 2000, { refresh_token: 'r' });
  t.match(await on('main', '/', { ...session, RefreshToken: 'r', OauthHMAC: '' }), {
    status: 503,
    body: 'Service Unavailable',
  });
  issue(1, 500, { refresh_token: 'r' });
  const renewed = await on('main', '/', { ...session, RefreshToken: 'r', OauthHMAC: '' });
  t.same(deleted(fieldsOf(renewed)), ['BearerToken_chunks', 'BearerToken_0', 'BearerToken_1']);
  await baton.waitForStats({
    'http.main.oauth_token_cookie_chunked': 3,
    'http.main.oauth_token_cookie_reassembled': 9,
    'http.main.oauth_token_cookie_malformed_chunks': 1,
    'http.main.oauth_token_cookie_oversized': 1,
  });
  // Chunks are read in any case.
  const chunks = (count: string, more = {}) => ({
    ...more,
    BearerToken_0: 'a',
    BearerToken_1: 'b',
    BearerToken_chunks: count,
  });
  const read = async (access: string, cookies: Cookies) =>
    hostCookies(await on('off', '/', { ...signed(access), ...cookies }));
  t.same(await read('ab', chunks('2')), ['BearerToken=ab']);
  t.same(await read('ab', chunks(' +02 ', { BearerToken: 'P', BearerToken_2: 'c' })), [
    'BearerToken=ab',
    'BearerToken_2=c',
  ]);
  for (const count of ['1', '3', '17', '-2', 'x', '']) t.same(await read('', chunks(count)), [], count);
  t.same(await read('P', chunks('9', { BearerToken: 'P' })), ['BearerToken=P']);
});

besideEnvoy('the client authenticates itself as configured', async (t, program) => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  const assertion = { signing_algorithm: 'ES256', assertion_audience: 'https://aud', assertion_lifetime: '10.5s' };
  const hmac_secret = { name: 'hmac' };
  const { login, on, requests } = await startLogin(t, program, {
    tokenSecret: pem,
    listeners: {
      basic: { auth_type: 'BASIC_AUTH' },
      tls: { auth_type: 'TLS_CLIENT_AUTH', credentials: { client_id: 'i :/=&?+%~é', hmac_secret } },
      jwt: { auth_type: 'PRIVATE_KEY_JWT', private_key_jwt_config: assertion },
      rsa: { auth_type: 'PRIVATE_KEY_JWT' },
    },
  });
  const last = () => requests.at(-1)!;
  await login('basic');
  t.equal(last().headers['authorization'], `Basic ${Buffer.from(`client 1:${pem}`).toString('base64')}`);
  t.match(last().body, /^grant_type=authorization_code&code=CO%20DE&redirect_uri=[^&]+&code_verifier=[^&]+$/);
  await on('basic', '/', { RefreshToken: 'r' });
  t.equal(last().body, 'grant_type=refresh_token&refresh_token=r');
  await login('tls');
  t.match(
    last().body,
    /&code=CO%20DE&client_id=i %3A%2F%3D%26%3F%2B%%7E%C3%A9&redirect_uri=[^&]+&code_verifier=[^&]+$/,
  );
  t.equal(last().headers['authorization'], undefined);
  await login('jwt');
  const [, token = ''] =
    /&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=([^&]+)&/.exec(
      last().body,
    )!;
  const [head = '', claims = '', signature = ''] = token.split('.');
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, number>;
  t.same(read(head), { alg: 'ES256', typ: 'JWT' });
  const { exp, iat, nbf, jti, ...rest } = read(claims);
  t.same(rest, { iss: 'client 1', sub: 'client 1', aud: 'https://aud' });
  t.same([exp! - iat!, iat! - nbf!], [10, 0]);
  t.match(jti, /^[\da-f-]{36}$/);
  const key = {
    key: createPublicKey(publicKey.export({ type: 'spki', format: 'pem' })),
    dsaEncoding: 'ieee-p1363',
  } as const;
  t.ok(verify('sha256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url')));
  const before = requests.length;
  t.equal((await login('rsa')).ended.status, 401, 'the key is not of the algorithm');
  t.equal(requests.length, before);
});

besideEnvoy('domains, the URL of the page, and the end of a session at the provider', async (t, program) => {
  const openid = { end_session_endpoint: 'https://end.test/s', disable_token_encryption: true };
  const { on } = await startLogin(t, program, {
    listeners: {
      some: { allowed_redirect_domains: ['app.test', '*.ok.test'] },
      original: { original_request_uri: 'https://%REQ(x-h)%', allowed_redirect_domains: ['app.test', '*.ok.test'] },
      end: openid,
      silent: { ...openid, post_logout_redirect_uri: { disabled: true } },
      bye: { ...openid, post_logout_redirect_uri: { uri: 'https://%REQ(:authority)%/bye?a=b' } },
    },
  });
  for (const [host, status] of [
    ['app.test', 302],
    ['APP.test:80', 302],
    ['a.ok.test', 302],
    ['ok.test', 401],
    ['evil.test', 401],
  ] as const)
    t.equal((await on('some', '/', {}, { host })).status, status, host);
  const moved = await on('original', '/x?a', {}, { 'x-h': 'b.ok.test' });
  const state = new URL(moved.headers['location'] as string).searchParams.get('state')!;
  t.match(JSON.parse(Buffer.from(state, 'base64url').toString()), { url: 'https://b.ok.test/x?a' });
  t.equal((await on('original', '/x?a', {}, { 'x-h': 'evil.test' })).status, 401);
  const end = async (listener: string) => (await on(listener, '/signout', { IdToken: 'IDT' })).headers['location'];
  const base = 'https://end.test/s?id_token_hint=IDT&client_id=client 1';
  t.equal(await end('silent'), base);
  t.equal(await end('end'), `${base}&post_logout_redirect_uri=http%3A%2F%2Fapp.test%2F`);
  t.equal(await end('bye'), `${base}&post_logout_redirect_uri=https%3A%2F%2Fapp.test%2Fbye%3Fa%3Db`);
});

besideEnvoy('a route has its own configuration', async (t, program) => {
  const { baton, on } = await startLogin(t, program, {
    listeners: { main: {}, bare: undefined },
    route: { stat_prefix: 'own.', authorization_endpoint: 'https://other.test' },
  });
  for (const listener of ['main', 'bare'])
    t.match((await on(listener, '/route')).headers['location'], /^https:\/\/other\.test\/\?client_id=/);
  t.match((await on('main', '/')).headers['location'], /^https:\/\/auth\.test\//);
  const without = await on('bare', '/', {}, { 'x-envoy-oauth-status': 'ok', authorization: 'mine' });
  t.match(hostHeaders(without), { authorization: 'mine' });
  t.equal(hostHeaders(without)['x-envoy-oauth-status'], undefined);
  await baton.waitForStats({ 'own.oauth_unauthorized_rq': 2, 'http.main.oauth_unauthorized_rq': 1 });
});

besideEnvoy('token endpoints without a host, or without a cluster', async (t, program) => {
  const at = (cluster: string) => ({
    allow_failed_matcher: [{ name: 'x-allow', present_match: true }],
    token_endpoint: { cluster, uri: 'http://a/b', timeout: '5s' },
  });
  const { baton, lines, login, on } = await startLogin(t, program, {
    listeners: { empty: at('empty'), nowhere: at('nowhere') },
  });
  const reasons = {
    empty: 'Failed to refresh the access token, and forwarding as unauthorized because OAuth failure is allowed',
    nowhere: 'Token endpoint cluster not found',
  };
  for (const listener of ['empty', 'nowhere'] as const) {
    t.equal((await login(listener)).ended.status, 401);
    const passed = await on(listener, '/', { RefreshToken: 'r' }, { 'x-allow': '1' });
    t.match(hostHeaders(passed), {
      'x-envoy-oauth-status': 'failed',
      'x-envoy-oauth-failure-reason': reasons[listener],
    });
    const refused = await on(listener, '/', { RefreshToken: 'r' });
    t.equal(refused.status, listener === 'empty' ? 302 : 401);
  }
  const statuses = (await lines(8)).map((line) => line.slice(0, 3));
  t.same(statuses, ['302', '401', '200', '302', '302', '401', '200', '401']);
  await baton.waitForStats({
    'http.empty.oauth_refreshtoken_failure': 2,
    'http.nowhere.oauth_refreshtoken_failure': 0,
    'http.nowhere.oauth_failure': 2,
  });
});

besideEnvoy('requests to the token endpoint are retried by its policy', async (t, program) => {
  const retry_back_off = { base_interval: '0.001s', max_interval: '0.002s' };
  const { baton, login, requests, state } = await startLogin(t, program, {
    listeners: {
      none: { retry_policy: { num_retries: 2, retry_back_off } },
      some: { retry_policy: { num_retries: 2, retry_back_off, retry_on: '5xx' } },
    },
  });
  const tries = async (listener: string, answer: typeof state.answer) => {
    const before = requests.length;
    state.answer = answer;
    t.equal((await login(listener)).ended.status, 401);
    return requests.length - before;
  };
  t.equal(await tries('none', { status: 500, body: '' }), 1, 'no condition is configured');
  t.equal(await tries('some', { status: 500, body: '' }), 3);
  t.equal(await tries('some', undefined), 3);
  t.equal(await tries('some', { status: 409, body: '' }), 1);
  await baton.waitForStats({
    'cluster.token.upstream_rq_retry': 4,
    'cluster.token.upstream_rq_retry_limit_exceeded': 2,
  });
});
