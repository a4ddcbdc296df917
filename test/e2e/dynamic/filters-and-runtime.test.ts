// Runtime layers (RTDS) and HTTP filter configurations (ECDS) from files that change under traffic.

import { join } from 'node:path';
import t from 'tap';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  tempDir,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';
import { ResourceFile } from './resource-file.js';

const RUNTIME = 'envoy.service.runtime.v3.Runtime';
const EXTENSION = 'envoy.config.core.v3.TypedExtensionConfig';
const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';

/** Returns a filter that marks responses with a version. */
const marker = (version: string): Config => ({
  '@type': `${FILTERS}.header_mutation.v3.HeaderMutation`,
  mutations: { response_mutations: [{ append: { header: { key: 'x-marker', value: version } } }] },
});
const markerResource = (version: string): Config => ({ name: 'marker', typed_config: marker(version) });

const discovered = (source: Config, more: Config = {}): Config => ({
  name: 'marker',
  config_discovery: {
    config_source: source,
    type_urls: [`${FILTERS}.header_mutation.v3.HeaderMutation`, `${FILTERS}.health_check.v3.HealthCheck`],
    ...more,
  },
});

const layers = async (baton: BatonProcess) => JSON.parse((await baton.admin('/runtime')).body) as { layers: string[] };

interface EcdsDump {
  ecds_filters?: { version_info?: string; client_status?: string; error_state?: Config; ecds_filter?: Config }[];
}

const ecdsDump = async (baton: BatonProcess): Promise<EcdsDump> => {
  const { configs } = JSON.parse((await baton.admin('/config_dump')).body) as { configs: Config[] };
  return configs.find(({ '@type': type }) => String(type).endsWith('EcdsConfigDump')) as EcdsDump;
};

t.test('an RTDS layer changes routing on all workers, and later layers override it', async (t) => {
  const directory = tempDir(t);
  const file = new ResourceFile(directory, 'runtime');
  file.write(RUNTIME, { name: 'front', layer: { 'routing.split': 0, other: 'remote' } });
  const split = { default_value: { numerator: 50 }, runtime_key: 'routing.split' };
  const manager = managerOf([
    answering({ prefix: '/', runtime_fraction: split }, 'new'),
    answering({ prefix: '/' }, 'old'),
  ]);
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('main', 0, manager)],
      clusters: [],
      extra: {
        layered_runtime: {
          layers: [
            { name: 'base', static_layer: { other: 'base' } },
            { name: 'remote', rtds_layer: { name: 'front', rtds_config: file.source } },
            { name: 'admin', admin_layer: {} },
          ],
        },
      },
    }),
    args: ['-l', 'info', '--concurrency', '2'],
  });
  const port = await baton.listenerPort('main');
  const some = async () =>
    (await Promise.all(Array.from({ length: 16 }, () => httpRequest(port)))).map(({ body }) => body);
  const all = (body: string) =>
    waitFor(async () => (await some()).every((each) => each === body), { what: `${body} on both workers` });
  t.ok(
    (await some()).every((body) => body === 'old'),
    'the layer is applied before the first request',
  );
  t.strictSame((await layers(baton)).layers, ['base', 'remote', 'admin']);

  file.write(RUNTIME, { name: 'front', layer: { 'routing.split': 100 } });
  await all('new');
  t.match(JSON.parse((await baton.admin('/runtime')).body), { entries: { other: { final_value: 'base' } } });
  t.equal((await baton.admin('/runtime_modify?routing.split=0', { method: 'POST' })).body, 'OK\n');
  await all('old');
  t.equal((await baton.admin('/runtime_modify?routing.split=', { method: 'POST' })).body, 'OK\n');
  await all('new');

  file.write(RUNTIME, { name: 'front', layer: { 'routing.split': null } });
  await waitForLog(baton, /invalid runtime value for 'routing.split': null/);
  await baton.waitForStat('runtime.update_rejected', 1);
  t.ok(
    (await some()).every((body) => body === 'new'),
    'an invalid update changes nothing',
  );
  t.equal(await baton.stat('runtime.update_success'), 2);
  t.equal(await baton.stat('runtime.num_layers'), 3);
  await baton.stop();
});

t.test(
  'a changed filter configuration applies to new requests, and an invalid one leaves the previous one in use',
  async (t) => {
    const directory = tempDir(t);
    const file = new ResourceFile(directory, 'filters');
    file.write(EXTENSION, markerResource('one'));
    const chain = { http_filters: [discovered(file.source), ROUTER_FILTER] };
    const ofRoute: Config = {
      ...marker('of the route'),
      '@type': `${FILTERS}.header_mutation.v3.HeaderMutationPerRoute`,
    };
    const manager = (body: string) => ({
      ...managerOf([
        answering({ prefix: '/route' }, body, { typed_per_filter_config: { marker: ofRoute } }),
        answering({ prefix: '/' }, body),
      ]),
      ...chain,
    });
    const baton = await startBaton(t, {
      config: bootstrap({
        listeners: [httpListener('a', 0, manager('a')), httpListener('b', 0, manager('b'))],
        clusters: [],
      }),
      args: ['-l', 'info', '--concurrency', '2'],
    });
    const ports = [await baton.listenerPort('a'), await baton.listenerPort('b')];
    const marks = async () =>
      (await Promise.all(Array.from({ length: 16 }, (_, index) => httpRequest(ports[index % 2]!)))).map(
        ({ status, headers }) => `${status} ${headers['x-marker']}`,
      );
    const all = (mark: string) =>
      waitFor(async () => (await marks()).every((each) => each === mark), { what: `${mark} of both listeners` });
    t.ok(
      (await marks()).every((mark) => mark === '200 one'),
      'no request is served before the configuration arrives',
    );
    t.equal(
      await baton.stat('extension_config_discovery.http_filter.marker.config_reload'),
      1,
      'both listeners share it',
    );

    t.match((await httpRequest(ports[0]!, '/route')).rawHeaders.join(), /x-marker,of the route/);
    t.notMatch(baton.stderr, /it has no effect/, 'routes may configure it');

    const version = file.write(EXTENSION, markerResource('two'));
    await all('200 two');
    t.match(await ecdsDump(baton), {
      ecds_filters: [
        {
          version_info: version,
          client_status: 'ACKED',
          ecds_filter: { '@type': `type.googleapis.com/${EXTENSION}`, name: 'marker', typed_config: marker('two') },
        },
      ],
    });

    const refused = file.write(EXTENSION, {
      name: 'marker',
      typed_config: { '@type': `${FILTERS}.buffer.v3.Buffer`, max_request_bytes: 1 },
    });
    await baton.waitForStat('extension_config_discovery.http_filter.marker.config_fail', 1);
    t.ok((await marks()).every((mark) => mark === '200 two'));
    t.match(await ecdsDump(baton), {
      ecds_filters: [
        {
          version_info: version,
          client_status: 'NACKED',
          error_state: { version_info: refused, details: /has type URL .*Buffer but expect .*HeaderMutation/ },
        },
      ],
    });

    file.write(EXTENSION, {
      name: 'marker',
      typed_config: {
        '@type': `${FILTERS}.health_check.v3.HealthCheck`,
        pass_through_mode: false,
        headers: [{ name: ':path', string_match: { exact: '/' } }],
      },
    });
    await all('200 undefined');
    t.match(
      await httpRequest(ports[0]!, '/route'),
      { status: 200 },
      'the route configuration of the other type is ignored',
    );
    t.ok(
      ((await baton.stat('http.a.health_check.ok')) ?? 0) > 0 &&
        ((await baton.stat('http.b.health_check.ok')) ?? 0) > 0,
      'another filter has replaced it, with stats in each chain',
    );
    await baton.stop();
  },
);

t.test('without a configuration the default applies, or requests are answered with 500', async (t) => {
  const directory = tempDir(t);
  const none = new ResourceFile(directory, 'none');
  none.writeText('resources: [');
  const log = join(directory, 'access.log');
  const manager = (filter: Config): Config => ({
    ...managerOf([answering({ prefix: '/' }, 'ok')]),
    http_filters: [filter, ROUTER_FILTER],
    access_log: [
      {
        name: 'file',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
          path: log,
          log_format: { text_format_source: { inline_string: '%RESPONSE_FLAGS% %RESPONSE_CODE%\n' } },
        },
      },
    ],
  });
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [
        httpListener('missing', 0, manager(discovered(none.source))),
        httpListener('default', 0, manager(discovered(none.source, { default_config: marker('default') }))),
      ],
      clusters: [],
    }),
    args: ['-l', 'info'],
  });
  const get = async (name: string) => httpRequest(await baton.listenerPort(name));
  t.match(await get('missing'), { status: 500, body: '' });
  t.match(await get('default'), { status: 200, headers: { 'x-marker': 'default' } });
  t.match(await ecdsDump(baton), { ecds_filters: [{ client_status: 'REQUESTED' }] });
  none.write(EXTENSION, markerResource('late'));
  await waitFor(async () => (await get('missing')).headers['x-marker'] === 'late', { what: 'it may arrive later' });
  await waitFor(async () => (await get('default')).headers['x-marker'] === 'late', { what: 'it replaces the default' });
  await baton.stop();
});
