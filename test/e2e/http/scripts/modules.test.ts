// Filters in TypeScript: packages of npm, and management servers, which name registered modules only.

import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { tempDir } from '../../harness/environment.js';
import { bootstrap, httpListener, httpRequest, ROUTER_FILTER, startBaton, waitFor } from '../../harness/index.js';
import { answering, managerOf } from '../proxy.js';
import { echoed, registering, scriptFilter, startScriptProxy, writeScript } from './script-proxy.js';

t.test('a package is found from the file that imports it', async (t) => {
  const { get } = await startScriptProxy(t, {
    files: {
      'node_modules/only-esm/package.json': '{"name":"only-esm","type":"module","exports":{"import":"./main.js"}}',
      'node_modules/only-esm/main.js': "export const word = 'from a package';",
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        import { word } from 'only-esm';
        export default defineHttpFilter({ onRequest: (request) => request.headers.set('x-word', word) });`,
    },
  });
  t.equal(echoed(await get('/')).headers['x-word'], 'from a package');
});

t.test('a delivered listener uses a registered module, and one that names another is refused', async (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'lds.json');
  const deliver = (module: string) => {
    const manager = managerOf([answering({ prefix: '/' }, 'here')], {
      http_filters: [scriptFilter(module), ROUTER_FILTER],
    });
    const listener = {
      '@type': 'type.googleapis.com/envoy.config.listener.v3.Listener',
      ...httpListener('main', 0, manager),
    };
    writeFileSync(`${path}.new`, JSON.stringify({ resources: [listener] }));
    renameSync(`${path}.new`, path);
  };
  writeScript(
    directory,
    'mark.ts',
    `import { defineHttpFilter } from 'baton';
    export default defineHttpFilter({ onResponse: (response) => response.headers.set('x-mark', 'yes') });`,
  );
  deliver('mark');
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [],
      clusters: [],
      extra: {
        node: { id: 'test', cluster: 'test' },
        ...registering({ mark: { filename: join(directory, 'mark.ts') } }),
        dynamic_resources: { lds_config: { path_config_source: { path } } },
      },
    }),
  });
  const port = await baton.listenerPort('main');
  t.match(await httpRequest(port), { status: 200, headers: { 'x-mark': 'yes' } });
  deliver('absent');
  await baton.waitForStat('listener_manager.lds.update_rejected', 1);
  await waitFor(() => baton.stderr.includes("no module 'absent' is registered in bootstrap_extensions"));
  t.match(await httpRequest(port), { status: 200, headers: { 'x-mark': 'yes' } });
});
