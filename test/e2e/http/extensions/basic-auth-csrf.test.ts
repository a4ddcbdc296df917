// basic_auth and csrf: which requests pass, and what the others get.

import { createHash } from 'node:crypto';
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
  rawExchange,
  startBaton,
  startEchoUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.http';
const BASIC = `${TYPE}.basic_auth.v3.BasicAuth`;
const CSRF = `${TYPE}.csrf.v3.CsrfPolicy`;
const sha = (password: string) => `{SHA}${createHash('sha1').update(password).digest('base64')}`;
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

async function start(t: Test, program: ProxyProgram, listeners: Readonly<Record<string, Config>>, route: Config) {
  const log = `${tempDir(t)}/log`;
  const host = await startEchoUpstream(t);
  const routes = [
    { match: { prefix: '/route' }, route: { cluster: 'host' }, typed_per_filter_config: { filter: route } },
    { match: { prefix: '/' }, route: { cluster: 'host' } },
  ];
  const built = Object.entries(listeners).map(([name, typed_config]) =>
    httpListener(name, 0, {
      access_log: [fileAccessLog(log, '%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %DYNAMIC_METADATA(filter:username)%\n')],
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
      http_filters: [{ name: 'filter', typed_config }, ROUTER_FILTER],
    }),
  );
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '50'],
    config: bootstrap({ listeners: built, clusters: [staticCluster('host', host.port)] }),
  });
  const ports: Record<string, number> = {};
  for (const name of Object.keys(listeners)) ports[name] = await baton.listenerPort(name);
  const on = (listener: string, path: string, headers: Record<string, string> = {}, method = 'GET') =>
    httpRequest(ports[listener]!, path, { method, headers: { host: 'a.test', ...headers } });
  const lines = (count: number) =>
    waitFor(() => (logLines(log).length === count ? logLines(log) : undefined), { what: `${count} lines` });
  return { baton, lines, on, ports };
}

besideEnvoy('a request needs the name and the password of a user', async (t, program) => {
  const users = { inline_string: `# users\nann:${sha('pw')}\n\ntom:${sha('a:b')}` };
  const { baton, lines, on, ports } = await start(
    t,
    program,
    {
      main: { '@type': BASIC, users, forward_username_header: 'x-user', emit_dynamic_metadata: true },
      open: { '@type': BASIC, users, authentication_header: 'x-auth', allow_missing: true, realm: 'my "realm"' },
    },
    { '@type': `${BASIC}PerRoute`, users: { inline_string: `bob:${sha('pw')}` }, realm: 'Büro 東' },
  );
  const failed = 'User authentication failed.';
  const cases: [string | undefined, string, string][] = [
    [undefined, 'Missing username and password.', 'no_credential'],
    [basic('ann:no'), 'Invalid username/password combination.', 'invalid_credential'],
    [basic('eve:pw'), 'Invalid username/password combination.', 'invalid_credential'],
    ['Basic !!', 'Invalid basic credential format.', 'invalid_format'],
    [basic('ann'), 'Invalid basic credential format.', 'invalid_format'],
    ['Bearer x', "Expected 'Basic' authentication scheme.", 'invalid_scheme'],
    ['Basic', "Expected 'Basic' authentication scheme.", 'invalid_scheme'],
  ];
  for (const [authorization, reason] of cases)
    t.match(await on('main', '/p?q=1', authorization === undefined ? {} : { authorization }), {
      status: 401,
      body: `${failed} ${reason}`,
      headers: { 'www-authenticate': 'Basic realm="http://a.test/p?q=1"' },
    });
  const logged = await lines(cases.length);
  t.same(
    logged,
    cases.map(([, , details]) => `401 ${details}_for_basic_auth -`),
  );
  const accepted = await on('main', '/', { authorization: basic('ann:pw'), 'x-user': 'eve' });
  t.match(JSON.parse(accepted.body), { headers: { 'x-user': 'ann', authorization: basic('ann:pw') } });
  t.equal((await on('main', '/', { authorization: basic('tom:a:b') })).status, 200);
  t.equal((await on('main', '/', { authorization: basic('ann:pw').replace(/=+$/, '') })).status, 200);
  const ofRoute = await on('main', '/route', { authorization: basic('ann:pw') });
  t.equal(ofRoute.status, 401);
  t.equal(Buffer.from(ofRoute.headers['www-authenticate'] ?? '', 'latin1').toString(), 'Basic realm="Büro 東"');
  t.equal((await on('main', '/route', { authorization: basic('bob:pw') })).status, 200);
  t.equal((await lines(cases.length + 5))[cases.length], '200 via_upstream ann');
  const twice = `authorization: ${basic('ann:pw')}\r\n`.repeat(2);
  const { text } = await rawExchange(ports['main']!, `GET / HTTP/1.1\r\nhost: a\r\n${twice}connection: close\r\n\r\n`);
  t.match(text, /^HTTP\/1.1 401 /, 'a field that comes twice is not a credential');
  await baton.waitForStats({ 'http.main.basic_auth.allowed': 4, 'http.main.basic_auth.denied': cases.length + 2 });
  t.equal((await on('open', '/')).status, 200);
  t.equal((await on('open', '/', { 'x-auth': 'Bearer x' })).status, 200);
  t.equal((await on('open', '/', { 'x-auth': basic('ann:pw') })).status, 200);
  t.match(await on('open', '/', { 'x-auth': basic('ann:no') }), {
    status: 401,
    headers: { 'www-authenticate': 'Basic realm="my \\"realm\\""' },
  });
});

besideEnvoy('a request that changes something comes from a page of the same or a known origin', async (t, program) => {
  const filter_enabled = { default_value: { numerator: 100 } };
  const { baton, lines, on } = await start(
    t,
    program,
    {
      main: { '@type': CSRF, filter_enabled, additional_origins: [{ exact: 'good.test' }, { suffix: '.ok.test' }] },
      shadow: {
        '@type': CSRF,
        filter_enabled: { default_value: { numerator: 0 } },
        shadow_enabled: { default_value: { numerator: 100 } },
      },
    },
    { '@type': CSRF, filter_enabled, additional_origins: [{ exact: 'route.test' }] },
  );
  const status = async (headers: Record<string, string>, method = 'POST', path = '/') =>
    (await on('main', path, headers, method)).status;
  for (const origin of ['http://a.test', 'a.test', 'http://good.test', 'https://x.ok.test'])
    t.equal(await status({ origin }), 200, origin);
  for (const origin of ['http://b.test', 'https://a.test:443', 'http://A.test', 'null', 'http://good.test.b'])
    t.equal(await status({ origin }), 403, origin);
  t.equal(await status({ referer: 'http://a.test/path?q' }), 200);
  t.equal(await status({ referer: 'http://b.test/http://a.test' }), 403);
  t.equal(await status({ origin: 'null', referer: 'http://a.test/' }), 403);
  t.match(await on('main', '/', {}, 'POST'), { status: 403, body: 'Invalid origin' });
  for (const method of ['PUT', 'DELETE', 'PATCH'])
    t.equal(await status({ origin: 'http://b.test' }, method), 403, method);
  for (const method of ['GET', 'OPTIONS']) t.equal(await status({ origin: 'http://b.test' }, method), 200, method);
  t.equal(await status({ origin: 'http://route.test' }, 'POST', '/route'), 200);
  t.equal(await status({ origin: 'http://good.test' }, 'POST', '/route'), 403);
  t.equal((await lines(20))[4], '403 csrf_origin_mismatch -');
  await baton.waitForStats({
    'http.main.csrf.request_valid': 6,
    'http.main.csrf.request_invalid': 9,
    'http.main.csrf.missing_source_origin': 3,
  });
  t.equal((await on('shadow', '/', { origin: 'http://b.test' }, 'POST')).status, 200);
  await baton.waitForStats({ 'http.shadow.csrf.request_invalid': 1 });
});
