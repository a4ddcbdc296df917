// Generic secrets of filters: from the bootstrap, and from files that change; and configurations of oauth2 that are refused.

import { renameSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  httpListener,
  ROUTER_FILTER,
  startBaton,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { cookiesOf, fieldsOf, generic, OAUTH, oauthConfig, startLogin } from './oauth2-login.js';

const SECRET = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret';

besideEnvoy('secrets come from files, and changed ones are used', async (t, program) => {
  const directory = tempDir(t);
  const file = (name: string) => `${directory}/${name}.json`;
  const deliver = (name: string, text: string) => {
    const resources = [{ '@type': SECRET, ...generic(name, text) }];
    writeFileSync(`${directory}/next`, JSON.stringify({ version_info: '1', resources }));
    renameSync(`${directory}/next`, file(name));
  };
  const named = (name: string) => ({ name, sds_config: { path_config_source: { path: file(name) } } });
  deliver('client', 'one');
  deliver('signing', 'first');
  deliver('route', 'of the route');
  const credentials = { client_id: 'c', token_secret: named('client'), hmac_secret: named('signing') };
  const { baton, login, on, requests } = await startLogin(t, program, {
    listeners: { main: { credentials, use_refresh_token: false } },
    route: { credentials: { ...credentials, hmac_secret: named('route') }, use_refresh_token: false },
  });
  const { session: known } = await login('main');
  t.match(requests[0]!.body, /&client_secret=one&/);
  t.equal((await on('main', '/', known)).status, 200);
  t.equal((await on('main', '/route', known)).status, 302, 'the route has another secret');
  deliver('signing', 'second');
  await waitFor(async () => (await on('main', '/', known)).status === 302, { what: 'the other secret' });
  deliver('client', 'two');
  await waitFor(async () => (await login('main')) && /&client_secret=two&/.test(requests.at(-1)!.body), {
    what: 'two',
  });
  await baton.waitForStats({ 'sds.signing.update_success': 2 });
  const dump = (await baton.admin('/config_dump?resource=dynamic_active_secrets')).body;
  t.match(dump, /"signing"/);
  t.notMatch(dump, Buffer.from('second').toString('base64'));
  t.notMatch(dump, '"second"');
});

besideEnvoy('without a secret requests are refused', async (t, program) => {
  const credentials = { client_id: 'c', token_secret: { name: 'empty' }, hmac_secret: { name: 'hmac' } };
  const { on } = await startLogin(t, program, {
    listeners: { main: { credentials: { ...credentials, token_secret: { name: 'token' } } } },
    tokenSecret: '',
  });
  const answer = await on('main', '/');
  t.match(answer, { status: 503, body: 'Service Unavailable' });
  t.same([fieldsOf(answer), cookiesOf(answer)], [[], {}]);
});

t.test('configurations that Envoy refuses are refused', async (t) => {
  const credentials = { client_id: 'c', token_secret: { name: 'token' }, hmac_secret: { name: 'hmac' } };
  const cases: [Config, RegExp][] = [
    [{ authorization_endpoint: 'foo' }, /invalid authorization endpoint URL 'foo'/],
    [{ end_session_endpoint: 'https://a', auth_scopes: [] }, /only supported for OpenID Connect/],
    [{ forward_bearer_token: true, preserve_authorization_header: true }, /at most one of forward_bearer_token/],
    [{ forward_bearer_token: true, forward_id_token: { header: 'Authorization' } }, /at most one of/],
    [{ credentials: { ...credentials, token_secret: undefined } }, /token_secret is required/],
    [{ redirect_uri: '%NOTHING%' }, /NOTHING/],
    [{ original_request_uri: '%NOTHING%' }, /NOTHING/],
    [
      { credentials: { ...credentials, hmac_secret: { name: 'hmax' } } },
      /no generic_secret 'hmax'; did you mean 'hmac'/,
    ],
    [{ token_endpoint: { cluster: 'token', uri: 'http://a/#b', timeout: '1s' } }, /'http:\/\/a\/#b' is not a URI/],
    [{ token_endpoint: { cluster: 'token', uri: 'http://a', timeout: '0s' } }, /must be above 0/],
    [{ retry_policy: { retry_priority: { name: 'a' } } }, /retry_priority/],
  ];
  for (const [parts, message] of cases) {
    const typed_config = { '@type': OAUTH, config: oauthConfig(parts) };
    const config = bootstrap({
      listeners: [
        httpListener('main', 0, {
          route_config: {
            virtual_hosts: [
              { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'token' } }] },
            ],
          },
          http_filters: [{ name: 'login', typed_config }, ROUTER_FILTER],
        }),
      ],
      clusters: [staticCluster('token', 1)],
    });
    Object.assign(config['static_resources'] as Config, { secrets: [generic('token', 'a'), generic('hmac', 'b')] });
    const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
    t.not((await baton.exited).code, 0);
    t.match(baton.stderr, message);
  }
});

t.test('a route with an unknown secret is refused', async (t) => {
  const credentials = { client_id: 'c', token_secret: { name: 'token' }, hmac_secret: { name: 'nope' } };
  const typed_per_filter_config = { login: { '@type': `${OAUTH}PerRoute`, config: oauthConfig({ credentials }) } };
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'token' }, typed_per_filter_config }];
  const config = bootstrap({
    listeners: [
      httpListener('main', 0, {
        route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
        http_filters: [{ name: 'login', typed_config: { '@type': OAUTH } }, ROUTER_FILTER],
      }),
    ],
    clusters: [staticCluster('token', 1)],
  });
  Object.assign(config['static_resources'] as Config, { secrets: [generic('token', 'a')] });
  const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  t.equal((await baton.exited).code, 1);
  t.match(baton.stderr, /routes\[0\]\.typed_per_filter_config.*hmac_secret: .*no generic_secret 'nope'/);
});
