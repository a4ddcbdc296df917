// The filters in examples/filters do what their first lines say.

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

/** Starts a proxy with one of the examples as its filter. `ports`: of the clusters; `host` is that of the route. */
function start(t: Test, example: string, config: Config, ports: Record<string, number>): Promise<HttpProxy> {
  return startProxy(t, {
    listeners: {
      main: managerOf([routeTo({ prefix: '/' }, 'host')], {
        http_filters: [scriptFilter('filter', { config }), ROUTER_FILTER],
      }),
    },
    clusters: Object.entries(ports).map(([name, port]) => staticCluster(name, port)),
    extra: registering({ filter: { filename: packagePath(`examples/filters/${example}.ts`) } }),
  });
}
