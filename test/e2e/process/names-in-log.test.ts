// Resource names in the application log.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { bootstrap, httpListener, startBaton, tempDir, waitFor } from '../harness/index.js';

t.test('a resource with control characters in its name is refused, and long names are truncated', async (t) => {
  const name = 'a\u001b[31mb\u009bc';
  const long = 'x'.repeat(10_000);
  const path = join(tempDir(t), 'clusters.json');
  const cluster = { '@type': 'type.googleapis.com/envoy.config.cluster.v3.Cluster', connect_timeout: '1s' };
  const resources = [name, long].map((each) => ({ ...cluster, name: each }));
  writeFileSync(path, JSON.stringify({ version_info: '1', resources }));
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200 } }];
  const route_config = { virtual_hosts: [{ name: 'v', domains: ['*'], routes }] };
  const listeners = [httpListener('s', 0, { route_config })];
  const baton = await startBaton(t, {
    config: {
      ...bootstrap({ listeners, clusters: [] }),
      dynamic_resources: { cds_config: { path_config_source: { path } } },
    },
    args: ['-l', 'debug'],
  });
  const shown = 'a\\u001b[31mb\\u009bc';
  const isShown = () =>
    baton.stderr.includes(`${shown}: `) &&
    baton.stderr.includes('it must not contain a control character') &&
    baton.stderr.includes(`cds: add/update cluster '${'x'.repeat(256)}… (9744 more characters)'`);
  await waitFor(isShown, { what: 'the names in the log' });
  t.notMatch(baton.stderr, /[\u001b\u009b]/);
  t.notMatch((await baton.admin('/stats')).body, /[\u001b\u009b]/);
  t.notOk(baton.stderr.includes('x'.repeat(300)));
});
