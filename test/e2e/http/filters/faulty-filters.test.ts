// A filter whose own functions fail during configuration: the error names the filter, the function and the source position.

import t from 'tap';
import { ResourceFile } from '../../dynamic/resource-file.js';
import {
  bootstrap,
  type Config,
  httpListener,
  ROUTER_FILTER,
  startBaton,
  staticCluster,
  tempDir,
  UNBUNDLED,
  waitForLog,
} from '../../harness/index.js';
import { answering, managerOf, routeTo, startProxy } from '../proxy.js';
import { FILTER_TYPE, ROUTE_TYPE } from './faulty-filter.js';

const PLACE = 'at .*test/e2e/http/filters/faulty-filter\\.';
const FAULTS: Record<string, RegExp> = {
  clusters: new RegExp(
    `config\\.yaml:.*: .*http_filters\\[0\\]\\.typed_config: clusters\\(\\) of 'acme\\.faulty' failed: TypeError: a mistake ${PLACE}`,
  ),
  scopes: new RegExp(`scopes\\(\\) of 'acme\\.faulty' failed: TypeError: a mistake ${PLACE}`),
  createOnWorker:
    /listener 'main' cannot be built: .*createOnWorker\(\) of 'acme\.faulty' returned no object with a create\(\)/,
  createOnPrimary: new RegExp(`createOnPrimary\\(\\) of 'acme\\.faulty' failed: TypeError: a mistake ${PLACE}`),
  compileRouteConfig: new RegExp(`compileRouteConfig\\(\\) of 'acme\\.faulty' failed: TypeError: a mistake ${PLACE}`),
};

for (const [callback, message] of Object.entries(FAULTS)) {
  t.test(`a mistake in ${callback}() of a filter is reported with its position`, async (t) => {
    const route = { '@type': `type.googleapis.com/${ROUTE_TYPE}`, arn: 'a' };
    const perFilter = callback === 'compileRouteConfig' ? { typed_per_filter_config: { faulty: route } } : {};
    const baton = await startBaton(t, {
      program: UNBUNDLED,
      nodeArgs: ['--import', new URL('./faulty-filter.js', import.meta.url).href],
      config: configOf(callback, perFilter),
      wait: 'spawned',
    });
    t.equal((await baton.exited).code, 1);
    t.match(baton.stderr, message);
    t.notMatch(baton.stderr, 'triggerUncaughtException');
  });
}

t.test('a mistake in close() on the primary is logged', async (t) => {
  const baton = await startBaton(t, {
    program: UNBUNDLED,
    nodeArgs: ['--import', new URL('./faulty-filter.js', import.meta.url).href],
    config: configOf('close', {}),
  });
  await baton.stop();
  t.same(baton.exit, { code: 0, signal: null });
  t.match(baton.stderr, "close() of the primary part of 'acme.faulty' failed: TypeError: a mistake");
});

for (const [what, message] of [
  ['createOnWorker', "createOnWorker\\(\\) of 'acme\\.faulty' returned no object with a create\\(\\)"],
  ['createOnWorker by an exception', `TypeError: a mistake ${PLACE}`],
] as const) {
  t.test(`a mistake in ${what} of a discovered configuration: the filter keeps the previous one`, async (t) => {
    const filters = new ResourceFile(tempDir(t), 'filters');
    const found = (failsIn: string) =>
      filters.write('envoy.config.core.v3.TypedExtensionConfig', { name: 'faulty', typed_config: filterOf(failsIn) });
    found('nothing');
    const { baton, get } = await startProxy(t, {
      program: UNBUNDLED,
      nodeArgs: ['--import', new URL('./faulty-filter.js', import.meta.url).href],
      listeners: {
        main: managerOf([answering({ prefix: '/' }, 'here')], {
          http_filters: [
            {
              name: 'faulty',
              config_discovery: { config_source: filters.source, type_urls: [`type.googleapis.com/${FILTER_TYPE}`] },
            },
            ROUTER_FILTER,
          ],
        }),
      },
    });
    t.match(await get('/'), { status: 200, body: 'here' });
    found(what);
    await waitForLog(baton, new RegExp(`the configuration of the filter 'faulty' cannot be used: .*${message}`));
    t.match(await get('/'), { status: 200, body: 'here' });
  });
}

function filterOf(failsIn: string): Config {
  return { '@type': `type.googleapis.com/${FILTER_TYPE}`, stat_prefix: failsIn };
}

function configOf(failsIn: string, perFilter: Config): Config {
  const manager = managerOf([{ ...routeTo({ prefix: '/' }, 'host'), ...perFilter }], {
    http_filters: [{ name: 'faulty', typed_config: filterOf(failsIn) }, ROUTER_FILTER],
  });
  return bootstrap({ listeners: [httpListener('main', 0, manager)], clusters: [staticCluster('host', 1)] });
}
