// jwt_authn: tokens that are accepted and refused, what a request gets of them, and requirements of rules and routes.

import { constants, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  logLines,
  ROUTER_FILTER,
  startBaton,
  startEchoUpstream,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3';
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const otherRsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const curves = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' } as const;
const ec = Object.fromEntries(
  Object.entries(curves).map(([alg, namedCurve]) => [alg, generateKeyPairSync('ec', { namedCurve })]),
);
const ed = generateKeyPairSync('ed25519');
const secret = Buffer.alloc(32, 'secret');
const jwk = (key: KeyObject, kid: string) => ({ ...key.export({ format: 'jwk' }), kid });
const KEYS = JSON.stringify({
  keys: [
    jwk(rsa.publicKey, 'rsa'),
    ...Object.entries(ec).map(([alg, { publicKey }]) => jwk(publicKey, alg)),
    jwk(ed.publicKey, 'EdDSA'),
    { kty: 'oct', k: secret.toString('base64url'), kid: 'oct' },
    { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA', kid: 'broken' },
    { kty: 'unknown' },
  ],
});

const nowSeconds = () => Math.floor(Date.now() / 1000);
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

function signature(alg: string, data: Buffer, key: KeyObject | undefined): Buffer {
  const hash = `sha${alg.slice(2)}`;
  if (alg === 'EdDSA') return sign(null, data, ed.privateKey);
  if (alg.startsWith('HS')) return createHmac(hash, secret).update(data).digest();
  if (alg.startsWith('ES')) return sign(hash, data, { key: ec[alg]!.privateKey, dsaEncoding: 'ieee-p1363' });
  const padding = alg.startsWith('PS') ? constants.RSA_PKCS1_PSS_PADDING : constants.RSA_PKCS1_PADDING;
  const options = alg.startsWith('PS') ? { saltLength: constants.RSA_PSS_SALTLEN_DIGEST } : {};
  return sign(hash, data, { key: key ?? rsa.privateKey, padding, ...options });
}

/** Returns a token of the issuer `me` with these claims. */
function token(
  claims: object = {},
  { alg = 'RS256', header = {}, key }: { alg?: string; header?: object; key?: KeyObject } = {},
) {
  const payload = { iss: 'me', sub: 'user', aud: ['one', 'two'], exp: nowSeconds() + 3600, ...claims };
  const data = `${encode({ alg, ...header })}.${encode(payload)}`;
  return `${data}.${signature(alg, Buffer.from(data), key).toString('base64url')}`;
}

const unsigned = (header: object | string, payload: object | string, end = 'eA') =>
  [header, payload]
    .map((part) => (typeof part === 'string' ? part : encode(part)))
    .join('.')
    .concat('.', end);
const bearer = (text: string) => ({ authorization: `Bearer ${text}` });
const local = { issuer: 'me', local_jwks: { inline_string: KEYS } };
const all = (provider: Config): Config => ({
  providers: { p: provider },
  rules: [{ match: { prefix: '/' }, requires: { provider_name: 'p' } }],
});

async function start(
  t: Test,
  program: ProxyProgram,
  listeners: Readonly<Record<string, Config>>,
  { keys = 1, routes }: { keys?: number; routes?: readonly Config[] } = {},
) {
  const log = `${tempDir(t)}/log`;
  const host = await startEchoUpstream(t);
  const built = Object.entries(listeners).map(([name, filter]) =>
    httpListener(name, 0, {
      access_log: [
        fileAccessLog(
          log,
          '%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %DYNAMIC_METADATA(envoy.filters.http.jwt_authn)%\n',
        ),
      ],
      route_config: {
        virtual_hosts: [
          { name: 'all', domains: ['*'], routes: routes ?? [{ match: { prefix: '/' }, route: { cluster: 'host' } }] },
        ],
      },
      http_filters: [{ name: 'jwt', typed_config: { '@type': `${TYPE}.JwtAuthentication`, ...filter } }, ROUTER_FILTER],
    }),
  );
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '50'],
    config: bootstrap({ listeners: built, clusters: [staticCluster('host', host.port), staticCluster('keys', keys)] }),
  });
  const ports: Record<string, number> = {};
  for (const name of Object.keys(listeners)) ports[name] = await baton.listenerPort(name);
  const on = (listener: string, path: string, headers: Record<string, string> = {}, method = 'GET') =>
    httpRequest(ports[listener]!, path, { method, headers: { host: 'a.test', ...headers } });
  const lines = (count: number) =>
    waitFor(() => (logLines(log).length === count ? logLines(log) : undefined), { what: `${count} lines` });
  return { baton, lines, on };
}

const received = ({ body }: { readonly body: string }) =>
  JSON.parse(body) as { url: string; headers: Record<string, string | undefined> };

besideEnvoy('each algorithm is verified with the keys of its kind', async (t, program) => {
  const { on } = await start(t, program, { main: all(local) });
  for (const alg of [
    'RS256',
    'RS384',
    'RS512',
    'PS256',
    'PS384',
    'PS512',
    'ES256',
    'ES384',
    'ES512',
    'EdDSA',
    'HS256',
    'HS384',
    'HS512',
  ]) {
    const kid = /^[RP]S/.test(alg) ? 'rsa' : alg.startsWith('HS') ? 'oct' : alg;
    t.equal((await on('main', '/', bearer(token({}, { alg, header: { kid } })))).status, 200, alg);
  }
  for (const alg of ['RS256', 'ES384', 'EdDSA'])
    t.equal((await on('main', '/', bearer(token({}, { alg })))).status, 200, `${alg} without kid`);
  const refused = async (text: string) => (await on('main', '/', bearer(text))).body;
  t.equal(await refused(token({}, { header: { kid: 'rsa' }, key: otherRsa.privateKey })), 'Jwt verification fails');
  t.equal(await refused(token({}, { header: { kid: 'ES256' } })), 'Jwt verification fails');
  t.equal(await refused(token({}, { header: { kid: 'x' } })), "Jwks doesn't have key to match kid or alg from Jwt");
});

besideEnvoy('a token that is not valid is refused with the reason', async (t, program) => {
  const { baton, lines, on } = await start(t, program, {
    main: all({ ...local, audiences: ['one'], subjects: { prefix: 'us' }, failed_status_in_metadata: 'failed' }),
  });
  const alg = { alg: 'RS256' };
  const cases: [string, string | undefined, number?][] = [
    ['Jwt is missing', undefined],
    ['Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections', 'a.b'],
    ['Jwt header is an invalid Base64url encoded', 'a+b.e30.eA'],
    ['Jwt header is an invalid JSON', unsigned('eA', {})],
    ['Jwt header [alg] field is required and must be a string', unsigned({}, {})],
    ['Jwt header [alg] is not supported', unsigned({ alg: 'none' }, {})],
    ['Jwt header [kid] field is not a string', unsigned({ ...alg, kid: 1 }, {})],
    ['Jwt payload is an invalid Base64url encoded', unsigned(alg, 'a+')],
    ['Jwt payload is an invalid JSON', unsigned(alg, 'eA')],
    ['Jwt payload is an invalid JSON', unsigned(alg, [1])],
    ['Jwt payload [iss] field is not a string', unsigned(alg, { iss: 1 })],
    ['Jwt payload [aud] field is not a string or string list', unsigned(alg, { aud: [1] })],
    ['Jwt payload [exp] field is not an integer', unsigned(alg, { exp: 'x' })],
    ['Jwt payload [nbf] field is not a positive 64 bit integer', unsigned(alg, { nbf: -1 })],
    ['Jwt signature is an invalid Base64url encoded', unsigned(alg, { iss: 'me' }, 'a+')],
    ['Jwt is expired', token({ exp: nowSeconds() - 100 })],
    ['Jwt not yet valid', token({ nbf: nowSeconds() + 1000 })],
    ['Jwt issuer is not configured', token({ iss: 'you' })],
    ['Audiences in Jwt are not allowed', token({ aud: 'three' }), 403],
    ['Audiences in Jwt are not allowed', token({ aud: undefined }), 403],
    ['Jwt verification fails', token({ sub: 'other' })],
  ];
  for (const [reason, text, status = 401] of cases) {
    const answer = await on('main', '/path?q=1', text === undefined ? {} : bearer(text));
    const error = text === undefined ? '' : ', error="invalid_token"';
    t.match(answer, {
      status,
      body: reason,
      headers: { 'www-authenticate': `Bearer realm="http://a.test/path?q=1"${error}` },
    });
  }
  const [missing, ...others] = await lines(cases.length);
  t.equal(missing, '401 jwt_authn_access_denied{Jwt_is_missing} {"failed":{"code":1,"message":"Jwt is missing"}}');
  t.match(others.at(-1), '{"failed":{"code":26,"message":"Jwt verification fails"}}');
  for (const claims of [{ aud: 'one' }, { exp: nowSeconds() - 10 }, { exp: undefined }])
    t.equal((await on('main', '/', bearer(token(claims)))).status, 200, JSON.stringify(claims));
  await baton.waitForStats({ 'http.main.jwt_authn.denied': cases.length, 'http.main.jwt_authn.allowed': 3 });
});

besideEnvoy('the lifetime of tokens is limited', async (t, program) => {
  const { on } = await start(t, program, {
    expiring: all({ ...local, require_expiration: true }),
    short: all({ ...local, max_lifetime: '100s' }),
    punctual: all({ ...local, clock_skew_seconds: 1 }),
  });
  const status = async (listener: string, claims: object) => (await on(listener, '/', bearer(token(claims)))).status;
  t.equal(await status('expiring', {}), 200);
  t.equal(await status('expiring', { exp: undefined }), 401);
  const iat = nowSeconds();
  t.equal(await status('short', { iat, exp: iat + 100 }), 200);
  t.equal(await status('short', { iat, exp: iat + 200 }), 401);
  t.equal(await status('short', { iat, exp: undefined }), 401);
  t.equal(await status('punctual', { exp: nowSeconds() - 10 }), 401);
});

besideEnvoy('a request gets what its token says, and nothing that a client invents', async (t, program) => {
  const { lines, on } = await start(t, program, {
    main: all({
      ...local,
      forward_payload_header: 'x-payload',
      pad_forward_payload_header: true,
      payload_in_metadata: 'payload',
      header_in_metadata: 'header',
      normalize_payload_in_metadata: { space_delimited_claims: ['scope', 'absent'] },
      claim_to_headers: [
        { header_name: 'x-name', claim_name: 'name' },
        { header_name: 'x-deep', claim_name: 'a.b' },
        { header_name: 'x-path', claim_path: [{ key: 'c.d' }, { key: 'e' }] },
        { header_name: 'x-whole', claim_name: 'whole' },
        { header_name: 'x-part', claim_name: 'part' },
        { header_name: 'x-flag', claim_name: 'flag' },
        { header_name: 'x-list', claim_name: 'list' },
        { header_name: 'x-absent', claim_name: 'absent' },
        { header_name: 'x-lines', claim_name: 'lines' },
      ],
    }),
    forwarding: all({ ...local, forward: true }),
  });
  const claims = {
    name: 'Ann',
    a: { b: 'deep' },
    'c.d': { e: 'path' },
    whole: 5,
    part: 1.5,
    flag: true,
    list: ['<a>'],
    scope: 'r  w',
  };
  const text = token({ ...claims, exp: undefined, aud: 'one' });
  const { headers, url } = received(
    await on('main', '/?b=1', { ...bearer(text), 'x-name': 'Eve', 'x-absent': 'invented', 'x-payload': 'invented' }),
  );
  const payload = text.split('.')[1]!;
  t.match(headers, {
    'x-payload': payload.padEnd(Math.ceil(payload.length / 4) * 4, '='),
    'x-name': 'Ann',
    'x-deep': 'deep',
    'x-path': 'path',
    'x-whole': '5',
    'x-part': '1.500000',
    'x-flag': 'true',
    'x-list': Buffer.from('["\\u003ca\\u003e"]').toString('base64'),
  });
  t.equal(headers['x-absent'], undefined);
  t.equal(headers['authorization'], undefined, 'the token is removed');
  t.equal(url, '/?b=1');
  t.equal(received(await on('main', `/?a=1&access_token=${text}&b=2`)).url, '/?a=1&b=2');
  t.equal(received(await on('forwarding', '/', bearer(text))).headers['authorization'], `Bearer ${text}`);
  const [line] = await lines(3);
  t.match(JSON.parse(line!.slice(line!.indexOf('{'))), {
    header: { alg: 'RS256' },
    payload: { name: 'Ann', scope: ['r', 'w'], part: 1.5 },
  });
});

besideEnvoy('tokens come in fields, parameters and cookies', async (t, program) => {
  const { on } = await start(t, program, {
    main: all({
      ...local,
      from_headers: [{ name: 'x-token' }, { name: 'x-other', value_prefix: 'Token ' }],
      from_params: ['jwt'],
      from_cookies: ['jwt'],
    }),
  });
  const text = token();
  const status = async (path: string, headers: Record<string, string>) => (await on('main', path, headers)).status;
  t.equal(await status('/', { 'x-token': text }), 200);
  t.equal(await status('/', { 'x-other': `Token ${text}` }), 200);
  t.equal(await status('/', { 'x-other': text }), 401, 'the prefix is missing');
  t.equal(await status(`/?jwt=${text}`, {}), 200);
  t.equal(await status('/', { cookie: `a=b; jwt=${text}` }), 200);
  t.equal(await status('/', bearer(text)), 401, 'the usual place is not one');
  t.equal(await status('/?jwt=a.b.c', { 'x-token': text }), 401, 'all tokens must be valid');
});

besideEnvoy('requirements are combined', async (t, program) => {
  const rule = (prefix: string, requires: Config) => ({ match: { prefix }, requires });
  const both = { requirements: [{ provider_name: 'p' }, { provider_name: 'q' }] };
  const { lines, on } = await start(t, program, {
    main: {
      providers: {
        p: { ...local, payload_in_metadata: 'p', failed_status_in_metadata: 'failed' },
        q: { ...local, issuer: 'you', from_headers: [{ name: 'x-token' }] },
      },
      requirement_map: { named: { provider_name: 'q' } },
      rules: [
        rule('/any', { requires_any: both }),
        rule('/all', { requires_all: both }),
        rule('/audience', { provider_and_audiences: { provider_name: 'p', audiences: ['three'] } }),
        rule('/failed', { allow_missing_or_failed: {} }),
        rule('/missing', { allow_missing: {} }),
        rule('/or-missing', { requires_any: { requirements: [{ provider_name: 'p' }, { allow_missing: {} }] } }),
        rule('/extract', { extract_only_without_validation: { verification_status_header: 'x-status' } }),
        { match: { prefix: '/named' }, requirement_name: 'named' },
        { match: { prefix: '/free' } },
        {
          match: { prefix: '/', headers: [{ name: 'x-check', present_match: true }] },
          requires: { provider_name: 'p' },
        },
      ],
    },
  });
  const mine = token();
  const yours = token({ iss: 'you' });
  const bad = token({}, { key: otherRsa.privateKey, header: { kid: 'rsa' } });
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const { body, status } = await on('main', path, headers);
    return status === 200 ? 200 : `${status} ${body}`;
  };
  t.equal(await ask('/any', bearer(mine)), 200);
  t.equal(await ask('/any', { ...bearer(bad), 'x-token': yours }), 200);
  t.equal(await ask('/any'), '401 Jwt is missing');
  t.equal(await ask('/any', bearer(bad)), '401 Jwt verification fails');
  t.equal(await ask('/any', bearer(yours)), '401 Jwt issuer is not configured');
  t.equal(await ask('/all', bearer(mine)), '401 Jwt is missing');
  t.equal(await ask('/all', { ...bearer(mine), 'x-token': yours }), 200);
  t.equal(await ask('/audience', bearer(mine)), '403 Audiences in Jwt are not allowed');
  for (const headers of [{}, bearer(bad), bearer(mine)]) t.equal(await ask('/failed', headers), 200);
  t.equal(await ask('/missing'), 200);
  t.equal(await ask('/missing', bearer(mine)), 200);
  t.equal(await ask('/missing', bearer(bad)), '401 Jwt verification fails');
  t.equal(await ask('/missing', bearer(token({ iss: 'they' }))), '401 Jwt issuer is not configured');
  t.equal(await ask('/or-missing'), 200);
  t.equal(await ask('/or-missing', bearer(bad)), '401 Jwt verification fails');
  t.equal(await ask('/named', { 'x-token': yours }), 200);
  t.equal(await ask('/named', bearer(mine)), '401 Jwt is missing');
  t.equal(await ask('/free', bearer('x')), 200);
  t.equal(await ask('/other'), 200, 'no rule matches');
  t.equal(await ask('/other', { 'x-check': '1' }), '401 Jwt is missing');
  const logged = await lines(22);
  t.match(logged[0], /"p":\{.*"sub":"user"/);
  t.match(logged[1], '"failed":{"code":26');
  t.match(logged[9], '"failed":{"code":26');
  t.equal(received(await on('main', '/extract', bearer(bad))).headers['x-status'], 'false');
  t.equal(received(await on('main', '/extract', bearer(mine))).headers['x-status'], undefined);
});

besideEnvoy('keys are fetched through a cluster, once', async (t, program) => {
  const asked: string[] = [];
  let answer = KEYS;
  const keys = await startUpstream(t, (request, response) => {
    asked.push(`${request.method} ${request.headers.host}${request.url}`);
    response.end(answer);
  });
  const remote = (fields: Config = {}): Config =>
    all({
      issuer: 'me',
      remote_jwks: { http_uri: { uri: 'https://keys.test/jwks?a=b', cluster: 'keys', timeout: '5s' }, ...fields },
    });
  const listeners = { lazy: remote(), failing: remote(), eager: remote({ async_fetch: { fast_listener: true } }) };
  const { baton, on } = await start(t, program, listeners, { keys: keys.port });
  await waitFor(() => asked.length === 1, { what: 'keys fetched ahead' });
  t.equal((await on('eager', '/', bearer(token()))).status, 200);
  t.equal(asked.length, 1);
  for (let count = 0; count < 3; count++) t.equal((await on('lazy', '/', bearer(token()))).status, 200);
  t.same(asked, ['GET keys.test/jwks?a=b', 'GET keys.test/jwks?a=b']);
  t.equal((await on('lazy', '/', bearer(token({}, { header: { kid: 'x' } })))).status, 401);
  answer = '{"keys":[]}';
  t.match(await on('failing', '/', bearer(token())), { status: 401, body: 'Jwks remote fetch is failed' });
  answer = KEYS;
  t.match(await on('failing', '/', bearer(token())), { status: 200 });
  await baton.waitForStats({
    'http.lazy.jwt_authn.jwks_fetch_success': 1,
    'http.failing.jwt_authn.jwks_fetch_failed': 1,
    'http.failing.jwt_authn.jwks_fetch_success': 1,
    'http.eager.jwt_authn.jwks_fetch_success': 1,
  });
});

besideEnvoy('routes and the filter change what is required and answered', async (t, program) => {
  const route = (prefix: string, config: Config) => ({
    match: { prefix },
    route: { cluster: 'host' },
    typed_per_filter_config: { jwt: { '@type': `${TYPE}.PerRouteConfig`, ...config } },
  });
  const routes = [
    { match: { prefix: '/', headers: [{ name: 'x-name', present_match: true }] }, direct_response: { status: 202 } },
    route('/off', { disabled: true }),
    route('/named', { requirement_name: 'named' }),
    route('/wrong', { requirement_name: 'wrong' }),
    { match: { prefix: '/' }, route: { cluster: 'host' } },
  ];
  const keys = await startUpstream(t, (_request, answer) => void answer.end(KEYS));
  const again = { clear_route_cache: true, claim_to_headers: [{ header_name: 'x-name', claim_name: 'sub' }] };
  const remote_jwks = { http_uri: { uri: 'http://keys.test/', cluster: 'keys', timeout: '5s' } };
  const { baton, on } = await start(
    t,
    program,
    {
      main: {
        ...all({ ...local, jwt_cache_config: { jwt_cache_size: 10 } }),
        requirement_map: { named: { provider_name: 'p' } },
        stat_prefix: 'own',
      },
      bare: { ...all(local), strip_failure_response: true, bypass_cors_preflight: true },
      again: all({ ...local, ...again }),
      later: all({ issuer: 'me', remote_jwks, ...again }),
    },
    { keys: keys.port, routes },
  );
  t.equal((await on('main', '/off')).status, 200);
  t.equal((await on('main', '/named')).status, 401);
  t.match(await on('main', '/wrong', bearer(token())), {
    status: 403,
    body: 'Failed JWT authentication: Wrong requirement_name: wrong. It should be one of [named]',
  });
  const text = token();
  for (let count = 0; count < 2; count++) t.equal((await on('main', '/', bearer(text))).status, 200);
  await baton.waitForStats({
    'http.main.jwt_authn.own.jwt_cache_hit': 1,
    'http.main.jwt_authn.own.jwt_cache_miss': 1,
    'http.main.jwt_authn.own.allowed': 3,
    'http.main.jwt_authn.own.denied': 2,
  });
  const bare = await on('bare', '/');
  t.same([bare.status, bare.body, bare.headers['www-authenticate']], [401, '', undefined]);
  const preflight = { origin: 'http://b', 'access-control-request-method': 'GET' };
  t.equal((await on('bare', '/', preflight, 'OPTIONS')).status, 200);
  await baton.waitForStats({ 'http.bare.jwt_authn.cors_preflight_bypassed': 1 });
  for (const listener of ['again', 'later'])
    t.equal((await on(listener, '/', bearer(text))).status, 202, 'the route is chosen again');
});
