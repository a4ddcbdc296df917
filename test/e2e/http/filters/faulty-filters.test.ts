// A filter that cannot be configured because of a mistake in its own functions: the message names the filter, the function and the source.

import t from 'tap';
import {
  bootstrap,
  type Config,
  httpListener,
  ROUTER_FILTER,
  startBaton,
  staticCluster,
  UNBUNDLED,
} from '../../harness/index.js';
import { managerOf, routeTo } from '../proxy.js';
import { FILTER_TYPE, ROUTE_TYPE } from './faulty-filter.js';

const PLACE = 'at .*test/e2e/http/filters/faulty-filter\\.';
const FAULTS: Record<string, RegExp> = {
  clusters: new RegExp(
    `config\\.yaml:.*: .*http_filters\\[0\\]\\.typed_config: clusters\\(\\) of 'acme\\.faulty' failed: TypeError: a mistake ${PLACE}`,
  ),
  scopes: new RegExp(`scopes\\(\\) of 'acme\\.faulty' failed: TypeError: a mistake ${PLACE}`),
  createOnWorker:
    /listener 'main' cannot be built: .*createOnWorker\(\) of 'acme\.faulty' has returned nothing with a create\(\)/,
  createOnPrimary: new RegExp(`createOnPrimary\\(\\) of 'acme\\.faulty' failed: TypeError: a mistake ${PLACE}`),
  compileRouteConfig: new RegExp(`compileRouteConfig\\(\\) of 'acme\\.faulty' failed: TypeError: a mistake ${PLACE}`),
};

for (const [callback, message] of Object.entries(FAULTS)) {
  t.test(`a mistake in ${callback}() of a filter`, async (t) => {
    const route = { '@type': `type.googleapis.com/${ROUTE_TYPE}`, name: 'a' };
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

t.test('a mistake in close() of what a filter has on the primary', async (t) => {
  const baton = await startBaton(t, {
    program: UNBUNDLED,
    nodeArgs: ['--import', new URL('./faulty-filter.js', import.meta.url).href],
    config: configOf('close', {}),
  });
  await baton.stop();
  t.same(baton.exit, { code: 0, signal: null });
  t.match(baton.stderr, "close() of what 'acme.faulty' has on the primary failed: TypeError: a mistake");
});

function configOf(failsIn: string, perFilter: Config): Config {
  const filter = { '@type': `type.googleapis.com/${FILTER_TYPE}`, stat_prefix: failsIn };
  const manager = managerOf([{ ...routeTo({ prefix: '/' }, 'host'), ...perFilter }], {
    http_filters: [{ name: 'faulty', typed_config: filter }, ROUTER_FILTER],
  });
  return bootstrap({ listeners: [httpListener('main', 0, manager)], clusters: [staticCluster('host', 1)] });
}
