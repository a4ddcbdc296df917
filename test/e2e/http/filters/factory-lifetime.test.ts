// The factory of an HTTP filter is closed with its chain, or when its configuration is replaced.

import t from 'tap';
import { ResourceFile } from '../../dynamic/resource-file.js';
import {
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  UNBUNDLED,
  waitForLog,
} from '../../harness/index.js';
import { managerOf, routeTo } from '../proxy.js';
import { FILTER_TYPE } from './scripted-filter.js';

const TYPE = `type.googleapis.com/${FILTER_TYPE}`;
const upstream = await startUpstream(t, (_request, answer) => void answer.end('served'));

t.test('factories are closed when a chain or a configuration is replaced, and when the server exits', async (t) => {
  const directory = tempDir(t);
  const listeners = new ResourceFile(directory, 'listeners');
  const filters = new ResourceFile(directory, 'filters');
  const discovered = {
    name: 'found',
    config_discovery: { config_source: filters.source, type_urls: [TYPE] },
  };
  const listener = (name: string) =>
    httpListener('front', 0, {
      ...managerOf([routeTo({ prefix: '/' }, 'host')], {
        http_filters: [{ name, typed_config: { '@type': TYPE, stat_prefix: name } }, discovered, ROUTER_FILTER],
      }),
    });
  const found = (name: string): Config => ({ name: 'found', typed_config: { '@type': TYPE, stat_prefix: name } });
  filters.write('envoy.config.core.v3.TypedExtensionConfig', found('c'));
  listeners.write('envoy.config.listener.v3.Listener', listener('a'));
  const baton = await startBaton(t, {
    program: UNBUNDLED,
    nodeArgs: ['--import', new URL('./scripted-filter.js', import.meta.url).href],
    args: ['--drain-time-s', '1'],
    config: bootstrap({
      listeners: [],
      clusters: [staticCluster('host', upstream.port)],
      extra: { dynamic_resources: { lds_config: listeners.source } },
    }),
  });
  const isClosed = (name: string) => waitForLog(baton, `the factory of '${name}' is closed`);
  t.match(await httpRequest(await baton.listenerPort('front'), '/'), { status: 200, body: 'served' });
  t.notMatch(baton.stderr, /the factory of/);

  filters.write('envoy.config.core.v3.TypedExtensionConfig', found('d'));
  await isClosed('c');
  listeners.write('envoy.config.listener.v3.Listener', listener('b'));
  await isClosed('a');
  t.notMatch(baton.stderr, /the factory of 'b'/, 'factories in use stay open');
  t.match(await httpRequest(await baton.listenerPort('front'), '/'), { status: 200, body: 'served' });

  await baton.stop();
  t.match(baton.stderr, /the factory of 'b' is closed/);
});
