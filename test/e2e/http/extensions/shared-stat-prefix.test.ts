// Extensions may use a stat prefix that others use too, such as that of their connection manager, without mixing up counters.

import t from 'tap';
import { ResourceFile } from '../../dynamic/resource-file.js';
import {
  bootstrap,
  type Config,
  httpListener,
  ROUTER_FILTER,
  startBaton,
  tempDir,
  UNBUNDLED,
} from '../../harness/index.js';
import { answering, managerOf, startProxy } from '../proxy.js';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.aws_request_signing.v3.AwsRequestSigningPerRoute';
const options = {
  program: UNBUNDLED,
  nodeArgs: ['--import', new URL('./sharing-filter.js', import.meta.url).href],
};
const filters = new ResourceFile(tempDir(t), 'filters');
filters.write('envoy.config.core.v3.TypedExtensionConfig', {
  name: 'found',
  typed_config: { '@type': TYPE, stat_prefix: 'own' },
});
const found = {
  name: 'found',
  config_discovery: { config_source: filters.source, type_urls: [TYPE] },
};
const proxy = await startProxy(t, {
  ...options,
  listeners: {
    main: withFilter({ name: 'own', typed_config: { '@type': TYPE, stat_prefix: 'own' } }),
    discovering: withFilter(found),
  },
});

for (const [name, what] of [
  ['main', 'a filter'],
  ['discovering', 'a filter with a discovered configuration'],
] as const) {
  t.test(`${what} shares the prefix of its connection manager`, async (t) => {
    for (let i = 0; i < 3; i++) t.match(await proxy.on(name, '/'), { status: 200 });
    await proxy.baton.waitForStats({
      [`http.${name}.seen`]: 3,
      [`http.${name}.passed`]: 6,
      [`http.${name}.downstream_rq_total`]: 3,
      [`http.${name}.downstream_rq_2xx`]: 3,
    });
  });
}

t.test('a filter that requests an undeclared layout is refused', async (t) => {
  const other = withFilter({ name: 'own', typed_config: { '@type': TYPE, stat_prefix: 'other' } });
  const config = bootstrap({ listeners: [httpListener('main', 0, other)], clusters: [] });
  const baton = await startBaton(t, { ...options, config, wait: 'spawned' });
  t.equal((await baton.exited).code, 1);
  t.match(baton.stderr, "listener 'main' cannot be built: Error: no stats scope 'http.main.' was made for other");
});

function withFilter(filter: Config): Config {
  return managerOf([answering({ prefix: '/' }, 'here')], { http_filters: [filter, ROUTER_FILTER] });
}
