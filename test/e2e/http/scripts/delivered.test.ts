// Configurations of modules that management servers deliver: those that a module refuses are rejected, with its reason.

import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type ControlPlane, startControlPlane, type XdsRequest } from '../../harness/control-plane.js';
import {
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { answering, managerOf } from '../proxy.js';
import { registering, scriptFilter, writeScript } from './script-proxy.js';

const ADS: Config = { resource_api_version: 'V3', ads: {} };
const EXTENSION = 'type.googleapis.com/baton.filters.http.script.v1.Script';

const FILTER = `import { defineHttpFilter } from 'baton';
export default defineHttpFilter({
  config(given) {
    if (given.who === 'endless') for (;;);
    if (typeof given.who !== 'string') throw new Error('who is missing');
    return given;
  },
  onResponse(response, ctx) { response.headers.set('x-who', ctx.config.who); },
});`;
const LOGGER = `import { defineAccessLogger } from 'baton';
export default defineAccessLogger({ config(given) { if (given.bad) throw new Error('bad logger'); }, onLog() {} });`;

const GOOD: Config = { who: 'ann' };
const BAD: Config = { wo: 'ann' };

const perRoute = (config: Config, filter = 'filter') => ({
  [filter]: { '@type': `${EXTENSION}PerRoute`, config },
});
const host = (name: string, domain: string, config: Config): Config => ({
  name,
  domains: [domain],
  routes: [answering({ prefix: '/' }, name)],
  typed_per_filter_config: perRoute(config),
});
const listenerWith = (filter: Config, more: Config) =>
  httpListener('in', 0, { http_filters: [filter, ROUTER_FILTER], ...more });
const RDS = { rds: { route_config_name: 'routes', config_source: ADS } };
const INLINE = managerOf([answering({ prefix: '/' }, 'ok')]);

async function start(t: Test, plane: ControlPlane, lenient = FILTER) {
  const directory = tempDir(t);
  writeScript(directory, 'filter.ts', FILTER);
  writeScript(directory, 'logger.ts', LOGGER);
  writeScript(directory, 'lenient.ts', lenient);
  plane.set('cluster', []);
  const baton = await startBaton(t, {
    args: ['-l', 'warning'],
    config: bootstrap({
      listeners: [],
      clusters: [plane.cluster()],
      extra: {
        ...plane.ads(),
        ...registering({
          filter: { filename: join(directory, 'filter.ts'), watch: true },
          logger: { filename: join(directory, 'logger.ts') },
          lenient: { filename: join(directory, 'lenient.ts'), watch: true },
        }),
      },
    }),
  });
  const port = await baton.listenerPort('in');
  const who = async (headers: Config = {}) =>
    String((await httpRequest(port, '/', { headers: headers as Record<string, string> })).headers['x-who']);
  return { baton, directory, port, who };
}

t.test('a listener whose filter or access logger a module refuses is rejected', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('listener', [listenerWith(scriptFilter('filter', { config: GOOD }), INLINE)]);
  const { baton, who } = await start(t, plane);
  t.equal(await who(), 'ann');
  plane.set('listener', [listenerWith(scriptFilter('filter', { config: BAD }), INLINE)]);
  t.match((await plane.waitForNack('listener')).error, "the script 'filter' refuses it: who is missing");
  t.equal(await who(), 'ann');
  const LOG = 'type.googleapis.com/baton.access_loggers.script.v1.Script';
  const withLogger = (isOfListener: boolean, config: Config, module = 'logger') => {
    const access_log = [{ name: 'log', typed_config: { '@type': LOG, module, config } }];
    const manager = { ...INLINE, ...(!isOfListener && { access_log }) };
    const own = listenerWith(scriptFilter('filter', { config: { who: 'bob' } }), manager);
    return isOfListener ? { ...own, access_log } : own;
  };
  for (const isOfListener of [false, true]) {
    plane.set('listener', [withLogger(isOfListener, { bad: true })]);
    t.match((await plane.waitForNack('listener')).error, "the script 'logger' refuses it: bad logger");
    plane.set('listener', [withLogger(isOfListener, {}, 'loger')]);
    t.match(
      (await plane.waitForNack('listener')).error,
      "no module 'loger' is registered in bootstrap_extensions; did you mean 'logger'?",
    );
  }
  t.equal(await who(), 'ann');
  plane.set('listener', [withLogger(true, {})]);
  await plane.waitForAck('listener');
  await baton.stop();
});

t.test(
  'routes and virtual hosts with a configuration that the module of their filter refuses are rejected',
  async (t) => {
    const plane = await startControlPlane(t);
    const routes = (config: Config, vhds = false): Config => ({
      name: 'routes',
      virtual_hosts: [host('own', 'own.com', config)],
      ...(vhds && { vhds: { config_source: plane.source('delta') } }),
    });
    plane.set('route', [routes({ who: 'one' })]);
    plane.set('listener', [listenerWith(scriptFilter('filter', { config: GOOD }), RDS)]);
    const { baton, port, who } = await start(t, plane);
    t.equal(await who({ host: 'own.com' }), 'one');
    plane.set('route', [routes(BAD)]);
    t.match(
      (await plane.waitForNack('route')).error,
      /virtual_hosts\[0\]\.typed_per_filter_config\.filter: the script 'filter' refuses it: who is missing/,
    );
    t.equal(await who({ host: 'own.com' }), 'one', 'the previous routes serve');

    plane.set('virtual-host', [host('routes/good', 'good.com', { who: 'good' }), host('routes/bad', 'bad.com', BAD)]);
    plane.set('route', [routes({ who: 'two' }, true)]);
    t.match((await plane.waitForNack('virtual-host')).error, /who is missing/);
    await waitFor(async () => (await who({ host: 'good.com' })) === 'good', { what: 'the good virtual host' });
    t.equal((await httpRequest(port, '/', { headers: { host: 'bad.com' } })).status, 404);

    plane.set('listener', [
      listenerWith(scriptFilter('filter', { config: { who: 'other filter' } }), RDS),
      { ...listenerWith({ ...scriptFilter('filter', { config: GOOD }), name: 'logger' }, RDS), name: 'second' },
    ]);
    await plane.waitForAck('listener');
    t.equal(await who({ host: 'good.com' }), 'good', 'the chain of another filter name does not change that');
    await baton.stop();
  },
);

t.test('scopes with routes that a module refuses are rejected', async (t) => {
  const plane = await startControlPlane(t);
  const scope = (config: Config) => ({
    name: 'scope',
    key: { fragments: [{ string_key: 'x' }] },
    route_configuration: { name: 'own', virtual_hosts: [host('own', '*', config)] },
  });
  const scoped_routes = {
    name: 'scopes',
    scope_key_builder: { fragments: [{ header_value_extractor: { name: 'tenant', index: 0 } }] },
    scoped_rds: { scoped_rds_config_source: ADS },
  };
  plane.set('scoped-route', [scope({ who: 'scope' })]);
  plane.set('listener', [listenerWith(scriptFilter('filter', { config: GOOD }), { scoped_routes })]);
  const { baton, who } = await start(t, plane);
  t.equal(await who({ tenant: 'x' }), 'scope');
  plane.set('scoped-route', [scope(BAD)]);
  t.match((await plane.waitForNack('scoped-route')).error, 'who is missing');
  t.equal(await who({ tenant: 'x' }), 'scope');
  await baton.stop();
});

t.test('a discovered filter with a configuration that its module refuses is rejected, as are its routes', async (t) => {
  const plane = await startControlPlane(t);
  const own = (config: Config) => [{ name: 'filter', typed_config: { '@type': EXTENSION, module: 'filter', config } }];
  plane.set('extension-config', own(GOOD));
  plane.set('route', [{ name: 'routes', virtual_hosts: [host('own', '*', { who: 'route' })] }]);
  const filter = { name: 'filter', config_discovery: { config_source: ADS, type_urls: [EXTENSION] } };
  plane.set('listener', [listenerWith(filter, RDS)]);
  const { baton, who } = await start(t, plane);
  t.equal(await who(), 'route');
  plane.set('extension-config', own(BAD));
  t.match((await plane.waitForNack('extension-config')).error, "the script 'filter' refuses it: who is missing");
  plane.set('route', [{ name: 'routes', virtual_hosts: [host('own', '*', BAD)] }]);
  t.match((await plane.waitForNack('route')).error, 'who is missing');
  t.equal(await who(), 'route');
  await baton.stop();
});

t.test('a listener is rejected if its module refuses routes that have arrived before', async (t) => {
  const plane = await startControlPlane(t);
  const lenient = FILTER.replace("throw new Error('who is missing')", "return { who: 'nobody' }");
  plane.set('route', [{ name: 'routes', virtual_hosts: [host('own', '*', BAD)] }]);
  plane.set('listener', [listenerWith({ ...scriptFilter('lenient'), name: 'filter' }, RDS)]);
  const { baton, directory, who } = await start(t, plane, lenient);
  t.equal(await who(), 'nobody');
  plane.set('listener', [listenerWith(scriptFilter('filter', { config: GOOD }), RDS)]);
  t.match((await plane.waitForNack('listener')).error, 'who is missing');
  t.equal(await who(), 'nobody');
  writeScript(directory, 'lenient.ts', FILTER);
  await baton.waitForStat('script.lenient.reload_failure', 1);
  t.match(
    baton.stderr,
    /the routes 'routes': virtual_hosts\[0\].*the script 'lenient' refuses it: who is missing; version 1/,
  );
  t.equal(await who(), 'nobody', 'a new version must accept the routes in use');
  await baton.stop();
});

t.test('a validator that does not end is stopped, and other configurations are accepted meanwhile', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('listener', [listenerWith(scriptFilter('filter', { config: GOOD }), INLINE)]);
  const { baton, who } = await start(t, plane);
  plane.set('listener', [
    listenerWith(scriptFilter('filter', { config: { who: 'endless' } }), INLINE),
    { ...listenerWith(scriptFilter('filter', { config: { who: 'second' } }), INLINE), name: 'second' },
  ]);
  const isRejection = ({ error, type }: XdsRequest) => type === 'listener' && error !== undefined;
  const { error } = await plane.waitFor('its rejection', isRejection, 90_000);
  t.match(error, "the script 'filter' cannot be used: loading did not end within 15 s");
  t.notMatch(error, 'second');
  t.equal(await who(), 'ann');
  const hasSecond = async () => (await baton.admin('/listeners')).body.includes('second::');
  await waitFor(hasSecond, { what: 'the second listener' });
  await baton.stop();
});
