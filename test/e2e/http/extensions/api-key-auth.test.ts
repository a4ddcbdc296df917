// The API key filter: where keys are, who they belong to, and what hosts get.

import t from 'tap';
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
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../../harness/index.js';

const FILTER = 'envoy.filters.http.api_key_auth';
const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.api_key_auth.v3';
const CREDENTIALS = [
  { key: 'one', client: 'ann' },
  { key: 'two words', client: 'bob' },
];
const SOURCES = [{ header: 'Authorization' }, { header: 'x-key' }, { query: 'api key' }, { cookie: 'ck' }];

const filter = (fields: Config = {}): Config => ({
  name: FILTER,
  typed_config: { '@type': `${TYPE}.ApiKeyAuth`, credentials: CREDENTIALS, key_sources: SOURCES, ...fields },
});
const route = (prefix: string, fields?: Config): Config => ({
  match: { prefix },
  route: { cluster: 'host' },
  ...(fields && { typed_per_filter_config: { [FILTER]: { '@type': `${TYPE}.ApiKeyAuthPerRoute`, ...fields } } }),
});
const ROUTES = [
  route('/bob', { allowed_clients: ['bob'] }),
  route('/own', { credentials: [{ key: 'three', client: 'eve' }] }),
  route('/elsewhere', { key_sources: [{ header: 'x-other' }] }),
  route('/named', { forwarding: { header: 'x-client' } }),
  route('/'),
];
const LISTENERS: Readonly<Record<string, Config>> = {
  plain: filter(),
  hidden: filter({ forwarding: { header: 'X-Client', hide_credentials: true } }),
  sourceless: filter({ key_sources: [] }),
  keyless: filter({ credentials: [] }),
};

async function start(t: Teardown, program: ProxyProgram) {
  const host = await startEchoUpstream(t);
  const log = `${tempDir(t)}/log`;
  const listeners = Object.entries(LISTENERS).map(([name, each]) =>
    httpListener(name, 0, {
      access_log: [fileAccessLog(log, '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n')],
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: ROUTES }] },
      http_filters: [each, ROUTER_FILTER],
    }),
  );
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '20'],
    config: bootstrap({ listeners, clusters: [staticCluster('host', host.port)] }),
  });
  const get = async (listener: string, path: string, headers: Record<string, string | string[]> = {}) =>
    httpRequest(await baton.listenerPort(listener), path, { headers });
  return { baton, get, log };
}

besideEnvoy('API keys are checked and forwarded as in Envoy', async (t, program) => {
  const { baton, get, log } = await start(t, program);
  const status = async (...of: Parameters<typeof get>) => (await get(...of)).status;

  await t.test('failures have a status, a body and details', async (t) => {
    const body = 'Client authentication failed.';
    t.match(await get('plain', '/'), { status: 401, body, headers: { 'content-type': 'text/plain' } });
    t.match(await get('plain', '/', { 'x-key': 'bad' }), { status: 401, body });
    t.match(await get('plain', '/bob', { 'x-key': 'one' }), { status: 403, body: 'Client is forbidden.' });
    t.equal(await status('sourceless', '/', { 'x-key': 'one' }), 401);
    t.equal(await status('keyless', '/', { 'x-key': 'one' }), 401);
    t.match(await get('plain', '/', { 'content-type': 'application/grpc' }), { headers: { 'grpc-status': '16' } });
    await waitFor(() => logLines(log).length === 6, { what: 'six lines' });
    t.same(logLines(log), [
      '401 - missing_api_key',
      '401 - unknown_api_key',
      '403 - client_not_allowed',
      '401 - missing_key_sources',
      '401 - missing_credentials',
      '200 - missing_api_key',
    ]);
    const stats = { unauthorized: 3, forbidden: 1, allowed: 0 };
    for (const [name, count] of Object.entries(stats))
      await baton.waitForStats({ [`http.plain.api_key_auth.${name}`]: count });
  });

  await t.test('the first source that has a key decides', async (t) => {
    t.equal(await status('plain', '/', { authorization: 'Bearer one' }), 200);
    t.equal(await status('plain', '/', { authorization: 'one' }), 200);
    t.equal(await status('plain', '/', { authorization: 'bearer one' }), 401);
    t.equal(await status('plain', '/', { authorization: 'Bearer bad', 'x-key': 'one' }), 401);
    t.equal(await status('plain', '/', { 'x-key': ['one', 'bad'] }), 200);
    t.equal(await status('plain', '/', { 'x-key': ['bad', 'one'] }), 401);
    t.equal(await status('plain', '/', { authorization: ['one', 'bad'] }), 401, 'the lines are one value');
    t.equal(await status('plain', '/?a=1&api%20key=two%20words'), 200);
    t.equal(await status('plain', '/?api+key=one'), 401);
    t.equal(await status('plain', '/', { cookie: 'a=b; ck="one"; z=1' }), 200);
    t.equal(await status('plain', '/', { cookie: ['a=b', 'ck=one'] }), 200);
  });

  await t.test('routes have their own keys, sources, clients and header', async (t) => {
    t.equal(await status('plain', '/bob', { 'x-key': 'two words' }), 200);
    t.same(
      [await status('plain', '/own', { 'x-key': 'three' }), await status('plain', '/own', { 'x-key': 'one' })],
      [200, 401],
    );
    t.equal(await status('plain', '/elsewhere', { 'x-other': 'one' }), 200);
    t.equal(await status('plain', '/elsewhere', { 'x-key': 'one' }), 401);
    const { body } = await get('plain', '/named', { 'x-key': 'one', 'x-client': 'forged' });
    t.match((JSON.parse(body) as { headers: object }).headers, { 'x-client': 'ann', 'x-key': 'one' });
  });

  await t.test('hosts get the client, and no key from any source', async (t) => {
    const { body } = await get('hidden', '/a?api%20key=one&z=1', {
      authorization: 'Bearer one',
      'x-key': 'one',
      cookie: 'ck=one; a=b',
    });
    const { headers, url } = JSON.parse(body) as { headers: Record<string, string>; url: string };
    t.same(
      [url, headers['x-client'], headers['cookie'], headers['authorization'], headers['x-key']],
      ['/a?z=1', 'ann', 'a=b', undefined, undefined],
    );
    const only = JSON.parse((await get('hidden', '/a?api%20key=one')).body) as { url: string };
    t.equal(only.url, '/a');
  });
});

t.test('other parameters stay as they were sent', async (t) => {
  const { get } = await start(t, { command: undefined });
  const { body } = await get('hidden', '/a?x=%20&api%20key=one&y=a%2Fb&q');
  t.equal((JSON.parse(body) as { url: string }).url, '/a?x=%20&y=a%2Fb&q');
});

t.test('mistakes are refused with their places, and no key is shown', async (t) => {
  const mistakes = [{ credentials: [...CREDENTIALS, { key: 'one', client: 'eve' }] }, { key_sources: [{}] }];
  const listeners = mistakes.map((fields, index) =>
    httpListener(`l${index}`, 0, {
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [] }] },
      http_filters: [filter(fields), ROUTER_FILTER],
    }),
  );
  const baton = await startBaton(t, {
    args: ['--mode', 'validate'],
    wait: 'spawned',
    config: bootstrap({ listeners, clusters: [] }),
  });
  await baton.exited;
  t.match(baton.stderr, /credentials\[2\]\.key: another client has this key/);
  t.match(baton.stderr, /key_sources\[0\]: header, query or cookie must be set/);
});
