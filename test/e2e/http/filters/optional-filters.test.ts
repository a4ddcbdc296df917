// is_optional of HTTP filters: as in Envoy, a filter that this build does not have is left out of its chain.

import t from 'tap';
import { startControlPlane } from '../../harness/control-plane.js';
import {
  bootstrap,
  type Config,
  freePort,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
} from '../../harness/index.js';
import { runBaton } from '../../process/command-line/run.js';
import { answering, managerOf, startProxy } from '../proxy.js';

const MODULES = { '@type': 'type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter' };
const TYPED_STRUCT = 'type.googleapis.com/xds.type.v3.TypedStruct';
const FOREIGN = { '@type': TYPED_STRUCT, type_url: 'type.googleapis.com/foo.Bar', value: { a: 1 } };
const WRAPPER = 'type.googleapis.com/envoy.config.route.v3.FilterConfig';
const BUFFER = 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer';
const optional = (name: string, more: Config = {}): Config => ({ name, is_optional: true, ...more });
const LEFT_OUT = 'server.optional_filters_left_out';

const manager = (filters: Config[], route: Config = {}): Config =>
  managerOf([answering({ prefix: '/' }, 'served', route)], { http_filters: [...filters, ROUTER_FILTER] });

t.test('optional filters that this build does not have are left out, with a warning and a count', async (t) => {
  const missing = [
    optional('script', { typed_config: MODULES }),
    optional('own', { typed_config: FOREIGN }),
    optional('envoy.extensions.filters.http.dynamic_modules'),
    optional('off', { typed_config: MODULES, disabled: true }),
  ];
  const ofRoute = {
    own: { '@type': WRAPPER, is_optional: true, config: FOREIGN },
    script: { '@type': WRAPPER, disabled: true },
  };
  const { baton, get } = await startProxy(t, {
    listeners: {
      main: manager([...missing, optional('limit', { typed_config: { '@type': BUFFER, max_request_bytes: 3 } })], {
        typed_per_filter_config: ofRoute,
      }),
    },
  });
  t.match(await get('/'), { status: 200, body: 'served' });
  t.equal((await get('/', { method: 'POST', body: 'long' })).status, 413, 'a filter that it has runs');
  t.equal(await baton.stat(LEFT_OUT), 4);
  for (const name of ['script', 'own', 'envoy.extensions.filters.http.dynamic_modules', 'off'])
    t.match(baton.stderr, new RegExp(`warning.*Didn't find a registered implementation for '${name}'`));
  t.match(baton.stderr, /it is optional and left out: requests pass without it/);
  const { body } = await baton.admin('/config_dump');
  t.match(body, /foo\.Bar|"own"/, 'the configuration is shown as it was given');
});

t.test('an optional filter that this build has must be valid', async (t) => {
  const cases: [config: Config, error: RegExp][] = [
    [{ '@type': BUFFER, max_request_bytes: 0 }, /max_request_bytes: it must be above 0/],
    [{ '@type': BUFFER, max_request_bytes: 1, other: 2 }, /unknown field 'other'/],
  ];
  for (const [typed_config, error] of cases) {
    const config = bootstrap({
      listeners: [httpListener('main', 0, manager([optional('limit', { typed_config })]))],
      clusters: [],
    });
    const { code, stderr } = await runBaton(t, { config, args: ['--mode', 'validate'] });
    t.equal(code, 1);
    t.match(stderr, error);
  }
});

t.test('a chain must not end with a filter that is left out', async (t) => {
  const http_filters = [optional('script', { typed_config: MODULES })];
  const listener = httpListener('main', 0, { ...managerOf([answering({ prefix: '/' }, 'x')]), http_filters });
  const config = bootstrap({ listeners: [listener], clusters: [] });
  const { code, stderr } = await runBaton(t, { config, args: ['--mode', 'validate'] });
  t.equal(code, 1);
  t.match(stderr, /the chain must end with a terminal filter/);
});

t.test('a listener of a management server with such a filter is acknowledged', async (t) => {
  const plane = await startControlPlane(t);
  const port = await freePort();
  plane.set('cluster', []);
  plane.set('listener', [httpListener('front', port, manager([optional('script', { typed_config: MODULES })]))]);
  const baton = await startBaton(t, {
    args: ['-l', 'warning'],
    config: bootstrap({ listeners: [], clusters: [plane.cluster()], extra: plane.ads('delta') }),
  });
  await baton.waitForStats({ 'listener_manager.lds.update_success': 1, [LEFT_OUT]: 1 });
  t.equal(await baton.stat('listener_manager.lds.update_rejected'), 0);
  t.match(await httpRequest(port, '/'), { status: 200, body: 'served' });
  t.match(baton.stderr, /'script'.*it is optional and left out/);
});
