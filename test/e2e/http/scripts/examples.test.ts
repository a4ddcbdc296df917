// The filters in examples/filters do what their first lines say.

import { generateKeyPairSync, sign } from 'node:crypto';
import { existsSync } from 'node:fs';
import t, { type Test } from 'tap';
import { packagePath } from '../../../../src/common/package/package-root.js';
import { type Config, ROUTER_FILTER, startEchoUpstream, startUpstream, staticCluster } from '../../harness/index.js';
import { type HttpProxy, managerOf, routeTo, startProxy } from '../proxy.js';
import { echoed, registering, scriptFilter } from './script-proxy.js';

t.test('api-key', async (t) => {
  const keys = await startUpstream(t, (request, answer) => {
    if (request.url !== '/keys/good%20one') answer.statusCode = 404;
    answer.end('{"consumer":"ann"}');
  });
  const host = await startEchoUpstream(t);
  const proxy = await start(t, 'api-key', { cluster: 'keys' }, { host: host.port, keys: keys.port });
  t.equal((await proxy.get('/')).status, 401);
  t.equal((await proxy.get('/', { headers: { 'x-api-key': 'bad' } })).status, 403);
  t.equal(host.accepted(), 0);
  const { headers } = echoed(await proxy.get('/', { headers: { 'x-api-key': 'good one' } }));
  t.match(headers, { 'x-consumer': 'ann' });
  t.notOk(headers['x-api-key']);
  await proxy.baton.waitForStat('http.main.script.filter.allowed', 1);
});

t.test('ab-by-cookie', async (t) => {
  const host = await startEchoUpstream(t);
  const other = await startUpstream(t, (_request, answer) => void answer.end('blue'));
  const config = { variants: { red: 'host', blue: 'other' } };
  const { get } = await start(t, 'ab-by-cookie', config, { host: host.port, other: other.port });
  t.match(await get('/', { headers: { cookie: 'variant=blue' } }), {
    body: 'blue',
    headers: { 'set-cookie': undefined },
  });
  t.match(echoed(await get('/', { headers: { cookie: 'variant=red' } })), { url: '/' });
  t.match(String((await get('/')).headers['set-cookie']), /^variant=(red|blue); Path=/);
});

t.test('hide-fields', async (t) => {
  const host = await startEchoUpstream(t);
  const { get } = await start(t, 'hide-fields', { fields: ['headers', 'rawHeaders'] }, { host: host.port });
  t.strictSame(JSON.parse((await get('/a')).body), { method: 'GET', url: '/a', body: '' });
});

t.test('canary-by-header', async (t) => {
  const host = await startEchoUpstream(t);
  const canary = await startUpstream(t, (_request, answer) => void answer.end('canary'));
  const { get } = await start(t, 'canary-by-header', { cluster: 'canary' }, { host: host.port, canary: canary.port });
  t.equal((await get('/', { headers: { 'x-canary': 'true' } })).body, 'canary');
  t.equal(echoed(await get('/')).url, '/');
});

t.test('model-router', async (t) => {
  const host = await startEchoUpstream(t);
  const model = await startUpstream(t, (_request, answer) => {
    answer.setHeader('content-type', 'text/event-stream');
    answer.write('data: {"text":"a"}\n\ndata: {"te');
    answer.end('xt":"b"}\n\ndata: [DONE]\n\n');
  });
  const proxy = await start(t, 'model-router', { models: { small: 'model' } }, { host: host.port, model: model.port });
  const asking = (name: string) => ({ method: 'POST', body: JSON.stringify({ model: name }) });
  t.match((await proxy.get('/', asking('small'))).body, /DONE/);
  t.match(await proxy.get('/', asking('large')), { status: 404, body: "there is no model 'large'\n" });
  await proxy.baton.waitForStat('http.main.script.filter.tokens', 2);
});

const PACKAGES = packagePath('examples/filters/with-packages/node_modules');
const withPackages = existsSync(PACKAGES) ? {} : { skip: 'npm ci in examples/filters/with-packages' };

t.test('jwt', withPackages, async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const keys = await startUpstream(t, (_request, answer) => {
    answer.end(JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256' }] }));
  });
  const host = await startEchoUpstream(t);
  const config = { issuer: 'me', audience: 'you', cluster: 'keys', path: '/jwks' };
  const { get } = await start(t, 'with-packages/jwt', config, { host: host.port, keys: keys.port });
  const token = (claims: Config) => {
    const part = (value: Config) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const text = `${part({ alg: 'RS256', kid: 'one' })}.${part(claims)}`;
    return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
  };
  const exp = Math.floor(Date.now() / 1000) + 3600;
  const ask = (authorization: string) => get('/', { headers: { authorization, 'x-user': 'root' } });
  const good = await ask(`Bearer ${token({ iss: 'me', aud: 'you', sub: 'ann', exp })}`);
  t.equal(echoed(good).headers['x-user'], 'ann');
  for (const claims of [{ iss: 'else' }, { aud: 'else' }, { exp: 1 }])
    t.equal((await ask(`Bearer ${token({ iss: 'me', aud: 'you', sub: 'ann', exp, ...claims })}`)).status, 401);
  t.match(await ask('Basic abc'), { status: 401, headers: { 'www-authenticate': 'Bearer' } });
});

t.test('country', withPackages, async (t) => {
  const host = await startEchoUpstream(t);
  const manager = { use_remote_address: true, xff_num_trusted_hops: 1 };
  const { get } = await start(t, 'with-packages/country', { refused: ['KR'] }, { host: host.port }, manager);
  const from = (address: string) => get('/', { headers: { 'x-forwarded-for': address } });
  t.equal(echoed(await from('8.8.8.8')).headers['x-country'], 'US');
  t.equal(echoed(await from('10.0.0.1')).headers['x-country'], 'unknown');
  t.equal((await from('123.45.67.8')).status, 451);
});

t.test('graphql-depth', withPackages, async (t) => {
  const host = await startEchoUpstream(t);
  const { get } = await start(t, 'with-packages/graphql-depth', { maxDepth: 3 }, { host: host.port });
  const ask = (query: string) => get('/graphql', { method: 'POST', body: JSON.stringify({ query }) });
  t.equal((await ask('{ a { b { c } } }')).status, 200);
  t.match(await ask('{ a { b { ...more } } } fragment more on C { c { d } }'), { status: 400, body: /has 4 levels/ });
  t.match(await ask('{ ...self } fragment self on A { a { ...self } }'), { status: 400, body: /Infinity levels/ });
  t.match(await ask('{ a'), { status: 400, body: /Syntax Error/ });
  t.match(await ask(`{ ${'a '.repeat(5000)} }`), { status: 400, body: /token/ });
  const deep = encodeURIComponent('{ a { b { c { d } } } }');
  t.equal((await get(`/graphql?query=${deep}`)).status, 400, 'a query in the URL');
  t.equal((await get('/graphql?query={a}')).status, 200);
});

/** Starts a proxy with one of the examples as its filter. `ports`: of the clusters; `host` is that of the route. */
function start(
  t: Test,
  example: string,
  config: Config,
  ports: Record<string, number>,
  manager: Config = {},
): Promise<HttpProxy> {
  return startProxy(t, {
    listeners: {
      main: managerOf([routeTo({ prefix: '/' }, 'host')], {
        http_filters: [scriptFilter('filter', { config }), ROUTER_FILTER],
        ...manager,
      }),
    },
    clusters: Object.entries(ports).map(([name, port]) => staticCluster(name, port)),
    extra: registering({ filter: { filename: packagePath(`examples/filters/${example}.ts`) } }),
  });
}
