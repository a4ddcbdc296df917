// credential_injector: which credential hosts get, and how tokens are fetched.

import t, { type Test } from 'tap';
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

const FILTER = 'type.googleapis.com/envoy.extensions.filters.http.credential_injector.v3.CredentialInjector';
const KIND = 'type.googleapis.com/envoy.extensions.http.injected_credentials';
const generic = (parts: Config = {}): Config => ({
  '@type': `${KIND}.generic.v3.Generic`,
  credential: { name: 'key' },
  ...parts,
});
const oauth2 = (credentials: Config = {}, parts: Config = {}): Config => ({
  '@type': `${KIND}.oauth2.v3.OAuth2`,
  token_endpoint: { cluster: 'token', uri: 'http://token.test/tokens', timeout: '5s' },
  client_credentials: { client_id: 'id /:=&?+', client_secret: { name: 'client' }, ...credentials },
  ...parts,
});

/** Starts listeners, each with a credential and the parts of its filter. */
async function start(
  t: Test,
  program: ProxyProgram,
  listeners: Readonly<Record<string, [Config, Config?]>>,
  state = { status: 200, body: '{"access_token":"TOK","expires_in":3600}' },
) {
  const log = `${tempDir(t)}/log`;
  const forms: string[] = [];
  const endpoint = await startUpstream(t, (request, response) => {
    let form = '';
    request.setEncoding('latin1').on('data', (part: string) => {
      form += part;
    });
    request.on('end', () => {
      forms.push(`${request.method} ${request.url} ${request.headers.host} ${form}`);
      response.writeHead(state.status).end(state.body);
    });
  });
  const host = await startEchoUpstream(t);
  const built = Object.entries(listeners).map(([name, [credential, more]]) => {
    const typed_config = { '@type': FILTER, ...more, credential: { name: 'credential', typed_config: credential } };
    return httpListener(name, 0, {
      access_log: [fileAccessLog(log, '%RESPONSE_CODE% %RESPONSE_CODE_DETAILS%\n')],
      route_config: {
        virtual_hosts: [
          { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'host' } }] },
        ],
      },
      http_filters: [{ name: 'filter', typed_config }, ROUTER_FILTER],
    });
  });
  const config = bootstrap({
    listeners: built,
    clusters: [staticCluster('host', host.port), staticCluster('token', endpoint.port)],
  });
  const secrets = Object.entries({ key: 'k e:y/\n', client: ' s+é', none: '' }).map(([name, text]) => ({
    name,
    generic_secret: { secret: { inline_string: text } },
  }));
  Object.assign(config['static_resources'] as Config, { secrets });
  const args = ['--file-flush-interval-msec', '50', '--concurrency', '1'];
  const baton = await startBaton(t, { ...program, args, config });
  const ports: Record<string, number> = {};
  for (const name of Object.keys(listeners)) ports[name] = await baton.listenerPort(name);
  const on = (listener: string, headers: Record<string, string> = {}) =>
    httpRequest(ports[listener]!, '/', { headers });
  const seen = async (listener: string, headers: Record<string, string> = {}) =>
    (JSON.parse((await on(listener, headers)).body) as { headers: Record<string, string> }).headers;
  const lines = (count: number) =>
    waitFor(() => (logLines(log).length === count ? logLines(log) : undefined), { what: `${count} lines` });
  return { baton, forms, lines, on, seen, state };
}

besideEnvoy('a secret is injected', async (t, program) => {
  const none = { credential: { name: 'none' } };
  const { baton, lines, on, seen } = await start(t, program, {
    main: [generic()],
    named: [generic({ header: 'X-Key', header_value_prefix: 'Pre ' })],
    over: [generic(), { overwrite: true }],
    missing: [generic(none)],
    open: [generic(none), { allow_request_without_credential: true }],
  });
  const value = 'k e:y/';
  t.equal((await seen('main'))['authorization'], value);
  t.equal((await seen('main', { authorization: 'mine' }))['authorization'], 'mine');
  t.match(await seen('named', { authorization: 'mine' }), { authorization: 'mine', 'x-key': `Pre ${value}` });
  t.equal((await seen('over', { authorization: 'mine' }))['authorization'], value);
  t.match(await on('missing'), { status: 401, body: 'Failed to inject credential.' });
  t.equal((await seen('missing', { authorization: 'mine' }))['authorization'], 'mine');
  t.equal((await seen('open'))['authorization'], undefined);
  t.equal((await lines(7))[4], '401 failed_to_inject_credential');
  const of = (listener: string, name: string) => `http.${listener}.credential_injector.${name}`;
  await baton.waitForStats({
    ...{ [of('main', 'injected')]: 1, [of('main', 'already_exists')]: 1, [of('over', 'injected')]: 1 },
    ...{ [of('missing', 'failed')]: 1, [of('missing', 'already_exists')]: 1, [of('open', 'failed')]: 1 },
  });
});

besideEnvoy('a token is fetched for the client', async (t, program) => {
  const { baton, forms, on, seen } = await start(t, program, {
    main: [oauth2({}, { scopes: ['a b', 'c/d'], endpoint_params: [{ name: 'aud /', value: 'x y&z' }, { name: 'n' }] })],
    tls: [oauth2({ auth_type: 'TLS_CLIENT_AUTH' })],
    none: [oauth2({ client_secret: { name: 'none' } })],
    lost: [oauth2({}, { token_endpoint: { cluster: 'nowhere', uri: 'http://a', timeout: '1s' } })],
  });
  const of = (listener: string, name: string) => `http.${listener}.credential_injector.oauth2.${name}`;
  await baton.waitForStats({ [of('main', 'token_fetched')]: 1, [of('tls', 'token_fetched')]: 1 });
  for (const listener of ['main', 'tls']) t.equal((await seen(listener))['authorization'], 'Bearer TOK');
  t.equal((await seen('main', { authorization: 'mine' }))['authorization'], 'mine');
  const begin = 'POST /tokens token.test grant_type=client_credentials&client_id=id%20%2F%3A%3D%26%3F%2B';
  t.same(forms.sort(), [begin, `${begin}&client_secret=%20s%2B%C3%A9&scope=a%20b%20c%2Fd&aud%20%2F=x%20y%26z&n=`]);
  for (const listener of ['none', 'lost']) t.equal((await on(listener)).status, 401);
  await baton.waitForStats({
    [of('none', 'token_requested')]: 0,
    [of('lost', 'token_requested')]: 0,
    'http.none.credential_injector.failed': 1,
  });
  const text = (await baton.admin('/stats?filter=token_fetch_failed')).body;
  t.match(text, /http\.none\S+client_secret: [1-9]/);
  t.match(text, /http\.lost\S+cluster_not_found: [1-9]/);
});

besideEnvoy('a token is fetched again after a failure, and before it expires', async (t, program) => {
  const first = { status: 500, body: 'x' };
  const retried = oauth2({}, { token_fetch_retry_interval: '1s' });
  const { baton, on, seen, state } = await start(t, program, { main: [retried] }, first);
  await waitFor(async () => /bad_response_code: [1-9]/.test((await baton.admin('/stats?filter=oauth2')).body), {
    what: 'a failure',
  });
  t.match(await on('main'), { status: 401 });
  const later = (token: string) =>
    waitFor(async () => (await seen('main'))['authorization'] === token, { what: token });
  Object.assign(state, { status: 200, body: '{"access_token":"A","expires_in":2}' });
  await waitFor(async () => (await on('main')).status === 200, { what: 'a token' });
  Object.assign(state, { body: '{"access_token":"B","expires_in":2}' });
  await later('Bearer B');
  Object.assign(state, { body: '{"access_token":"C"}' });
  await waitFor(async () => /bad_token: [1-9]/.test((await baton.admin('/stats?filter=oauth2')).body), {
    what: 'a failure',
  });
  t.equal((await seen('main'))['authorization'], 'Bearer B', 'the former token stays in use');
});

t.test('an empty token is not injected', async (t) => {
  const first = { status: 200, body: '{"access_token":"","expires_in":3600}' };
  const { baton, on } = await start(t, { command: undefined }, { main: [oauth2()] }, first);
  await baton.waitForStats({ 'http.main.credential_injector.oauth2.token_fetch_failed_on_bad_token': 1 });
  t.match(await on('main'), { status: 401, body: 'Failed to inject credential.' });
});
