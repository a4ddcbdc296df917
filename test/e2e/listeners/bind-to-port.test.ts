// A listener that is not bound (bind_to_port: false).

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { bootstrap, startBaton, staticCluster, tcpListener, tempDir } from '../harness/index.js';

t.test('an unbound listener does not touch its socket path, whatever its mode', async (t) => {
  const path = join(tempDir(t), 'quiet.sock');
  const quiet = { ...tcpListener('quiet', 0, { cluster: 'none' }), bind_to_port: false };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [{ ...quiet, address: { pipe: { path, mode: 0o600 } } }],
      clusters: [staticCluster('none', 1)],
    }),
  });
  t.match((await baton.admin('/listeners')).body, `quiet::${path}`);
  t.equal(existsSync(path), false);
});
