// A server that stands still for longer than initial_fetch_timeout, as in a machine that is paused: what a management server
// has sent meanwhile has come in time.

import { readFileSync } from 'node:fs';
import t from 'tap';
import { startControlPlane } from '../harness/control-plane.js';
import { bootstrap, startBaton, staticCluster, waitFor } from '../harness/index.js';

/** Reached only while the server stands still. */
const TIMEOUT_MS = 3000;

t.test('a response that waits is used before the server is live', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('cluster', [staticCluster('discovered', 1)]);
  plane.hold();
  const cds_config = { resource_api_version: 'V3', ads: {}, initial_fetch_timeout: `${TIMEOUT_MS / 1000}s` };
  const config = bootstrap({
    listeners: [],
    clusters: [plane.cluster()],
    extra: {
      node: { id: 'test-node', cluster: 'test-cluster' },
      dynamic_resources: { ads_config: plane.api(), cds_config },
    },
  });
  const baton = await startBaton(t, { config, args: ['-l', 'info'], wait: 'admin' });
  await plane.waitFor('a request', ({ type }) => type === 'cluster');
  baton.child.kill('SIGSTOP');
  await waitFor(() => /\) T /.test(readFileSync(`/proc/${baton.pid}/stat`, 'latin1')), {
    what: 'a server that stands',
  });
  const stoodAt = performance.now();
  plane.release();
  await waitFor(() => performance.now() - stoodAt > TIMEOUT_MS, { what: 'the timeout' });
  baton.child.kill('SIGCONT');
  await waitFor(async () => (await baton.admin('/ready')).status === 200, { what: 'LIVE' });
  t.equal(await baton.stat('cluster_manager.cds.init_fetch_timeout'), 0);
  t.equal(await baton.stat('cluster_manager.cds.update_success'), 1);
  await baton.stop();
});
