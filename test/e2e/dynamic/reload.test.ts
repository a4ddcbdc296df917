// Reloads of the bootstrap beside a management server: changes of the one apply to later updates of the other.

import { cpSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { packagePath } from '../../../src/common/package/package-root.js';
import { startControlPlane } from '../harness/control-plane.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  freePort,
  httpListener,
  httpRequest,
  startBaton,
  tempDir,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

async function reload(baton: BatonProcess, config: Config): Promise<{ outcome: string; why?: string }> {
  writeFileSync(baton.configPath, JSON.stringify(config));
  const { body } = await baton.admin('/config/reload?format=json&apply=true', { method: 'POST', deadlineMs: 60_000 });
  return JSON.parse(body);
}

const answerOf = async (baton: BatonProcess, listener: string) =>
  (await httpRequest(await baton.listenerPort(listener), '/')).body;

t.test('sources use the clusters that a reload has added, and not those that it removed', async (t) => {
  const [first, second] = [await startControlPlane(t), await startControlPlane(t)];
  const extra = first.ads();
  const config = (...clusters: Config[]) =>
    bootstrap({ listeners: [], clusters: [first.cluster(), ...clusters], extra });
  const services = { grpc_services: [{ envoy_grpc: { cluster_name: 'second' } }] };
  const config_source = { resource_api_version: 'V3', api_config_source: first.api('sotw', services) };
  const front = httpListener('front', 0, { rds: { route_config_name: 'routes', config_source } });
  const routes = (text: string) => ({
    name: 'routes',
    virtual_hosts: [{ name: 'all', domains: ['*'], routes: [answering({ prefix: '/' }, text)] }],
  });
  second.set('route', [routes('one')]);
  first.set('cluster', []);
  first.set('listener', []);
  const baton = await startBaton(t, { config: config(), args: ['--drain-time-s', '1'] });
  await first.waitForAck('listener');
  first.set('listener', [front]);
  t.match((await first.waitForNack('listener')).error, /'second' does not exist/);

  t.match(await reload(baton, config(second.cluster('second'))), { outcome: 'applied' });
  first.set('listener', [front]);
  await first.waitForAck('listener');
  await waitFor(async () => (await answerOf(baton, 'front').catch(() => '')) === 'one', { what: 'the listener' });

  const why = /cluster 'second' .*listener 'front'.*api_config_source/;
  t.match(await reload(baton, config()), { outcome: 'failed', why });
  const http1 = { ...second.cluster('second'), typed_extension_protocol_options: undefined };
  t.match(await reload(baton, config(http1)), { outcome: 'failed', why });
  second.set('route', [routes('two')]);
  await waitFor(async () => (await answerOf(baton, 'front')) === 'two', { what: 'routes from the source' });

  first.set('listener', []);
  await baton.waitForStat('listener_manager.listener_removed', 1);
  t.match(await reload(baton, config()), { outcome: 'applied' });
  first.set('listener', [front]);
  t.match((await first.waitForNack('listener')).error, /'second' does not exist/, 'though it was valid before');
  await baton.stop();
});

for (const [what, name, why] of [
  ['name', 'front', "a dynamic listener now has the name 'front'"],
  ['address', 'other', "another listener now has the address of 'front'"],
] as const)
  t.test(`a dynamic listener that is added during a reload keeps its ${what}`, async (t) => {
    const port = await freePort();
    const plane = await startControlPlane(t);
    const routes = await startControlPlane(t);
    plane.set('cluster', []);
    plane.set('listener', []);
    const config = (...listeners: Config[]) =>
      bootstrap({ listeners, clusters: [plane.cluster(), routes.cluster('routes')], extra: plane.ads() });
    const baton = await startBaton(t, { config: config() });
    await plane.waitForAck('listener');
    const services = { grpc_services: [{ envoy_grpc: { cluster_name: 'routes' } }] };
    const config_source = {
      resource_api_version: 'V3',
      initial_fetch_timeout: '0s',
      api_config_source: routes.api('sotw', services),
    };
    routes.hold();
    const late = httpListener('front', port, { rds: { route_config_name: 'late', config_source } });
    const reloaded = reload(baton, config(late));
    await routes.waitFor('a request for routes', ({ type }) => type === 'route');
    plane.set('listener', [httpListener(name, port, managerOf([answering({ prefix: '/' }, 'dynamic')]))]);
    await waitFor(async () => (await answerOf(baton, name).catch(() => '')) === 'dynamic', { what: 'the listener' });
    routes.set('route', [{ name: 'late', virtual_hosts: [] }]);
    routes.release();
    t.match(await reloaded, { outcome: 'failed', why });
    t.equal(await answerOf(baton, name), 'dynamic');
    plane.set('listener', []);
    await baton.waitForStat('listener_manager.total_listeners_active', 0);
    await baton.stop();
  });

t.test('a dynamic resource is applied when a reload removes the static one of its name', async (t) => {
  const plane = await startControlPlane(t);
  const saying = (text: string) => httpListener('front', 0, managerOf([answering({ prefix: '/' }, text)]));
  const config = (listeners: Config[], ...clusters: Config[]) =>
    bootstrap({ listeners, clusters: [plane.cluster(), ...clusters], extra: plane.ads() });
  const cluster = { name: 'shared', connect_timeout: '1s', alt_stat_name: 'static' };
  plane.set('cluster', [{ ...cluster, alt_stat_name: 'dynamic' }]);
  plane.set('listener', [saying('dynamic')]);
  const baton = await startBaton(t, { config: config([saying('static')], cluster), args: ['--drain-time-s', '1'] });
  await plane.waitForAck('listener');
  t.equal(await answerOf(baton, 'front'), 'static');
  t.match(await reload(baton, config([])), { outcome: 'applied' });
  await waitFor(async () => (await answerOf(baton, 'front').catch(() => '')) === 'dynamic', { what: 'the listener' });
  await waitFor(async () => (await baton.admin('/clusters')).body.includes('shared::added_via_api::true'), {
    what: 'the cluster',
  });
  plane.set('cluster', []);
  plane.set('listener', []);
  await plane.waitForAck('listener');
  await baton.waitForStat('listener_manager.total_listeners_active', 0);
  t.notMatch((await baton.admin('/clusters')).body, /^shared::/m);
  await baton.stop();
});

t.test('code that only reloads need is loaded in advance, before descriptors may be short', async (t) => {
  const copy = tempDir(t);
  for (const name of ['package.json', 'dist/baton']) cpSync(packagePath(name), join(copy, name), { recursive: true });
  for (const name of ['node_modules', 'native-shim', 'dist/schema.json'])
    symlinkSync(packagePath(name), join(copy, name));
  const program = join(copy, 'dist/baton');
  const config = (text: string) =>
    bootstrap({ listeners: [httpListener('web', 0, managerOf([answering({ prefix: '/' }, text)]))], clusters: [] });
  const baton = await startBaton(t, {
    program: join(program, 'main.js'),
    config: config('one'),
    args: ['-l', 'debug'],
  });
  await waitForLog(baton, 'the modules for reloads are loaded');
  // Node does not retry a failed import, whatever the reason.
  const parts = readdirSync(program).filter((name) => /^(on-demand|comparison|carry-out|changes)-.*\.js$/.test(name));
  t.not(parts.length, 0);
  for (const name of parts) writeFileSync(join(program, name), 'throw new Error("EMFILE");');
  t.match(await reload(baton, config('two')), { outcome: 'applied' });
  t.equal(await answerOf(baton, 'web'), 'two');
  await baton.stop();
});
