// A server that is stopped for longer than an xDS timeout, as in a paused virtual machine: messages that arrived meanwhile are
// on time.

import { readFileSync } from 'node:fs';
import t from 'tap';
import { type ControlPlane, startControlPlane } from '../harness/control-plane.js';
import { type BatonProcess, bootstrap, type Config, startBaton, staticCluster, waitFor } from '../harness/index.js';

/** Reached only while the server is stopped. */
const TIMEOUT_MS = 3000;
const TIMEOUT = `${TIMEOUT_MS / 1000}s`;
const DISCOVERED = [staticCluster('discovered', 1)];

t.test('a response that arrived is applied before the server is live', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('cluster', DISCOVERED);
  plane.hold();
  const config = clustersFrom(plane, { initial_fetch_timeout: TIMEOUT });
  const baton = await startBaton(t, { config, wait: 'admin' });
  await plane.waitFor('a request', ({ type }) => type === 'cluster');
  await whileStopped(baton, () => plane.release());
  await waitFor(async () => (await baton.admin('/ready')).status === 200, { what: 'LIVE' });
  t.equal(await baton.stat('cluster_manager.cds.init_fetch_timeout'), 0);
  t.equal(await baton.stat('cluster_manager.cds.update_success'), 1);
  await baton.stop();
});

t.test('a heartbeat that arrived keeps its resource alive', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('cluster', DISCOVERED, { ttl: TIMEOUT });
  const baton = await startBaton(t, { config: clustersFrom(plane) });
  const { nonce } = await plane.waitForAck('cluster');
  await whileStopped(baton, () => plane.heartbeat('cluster', ['discovered'], TIMEOUT));
  await plane.waitFor('a reply to the heartbeat', (request) => request.type === 'cluster' && request.nonce > nonce);
  t.equal(await baton.stat('cluster_manager.cluster_removed'), 0);
  await baton.stop();
});

function clustersFrom(plane: ControlPlane, source: Config = {}): Config {
  const cds_config = { resource_api_version: 'V3', ads: {}, ...source };
  return bootstrap({
    listeners: [],
    clusters: [plane.cluster()],
    extra: {
      node: { id: 'test-node', cluster: 'test-cluster' },
      dynamic_resources: { ads_config: plane.api(), cds_config },
    },
  });
}

/** Stops the process while `act` runs, and for longer than the timeout. */
async function whileStopped({ child, pid }: BatonProcess, act: () => void): Promise<void> {
  child.kill('SIGSTOP');
  await waitFor(() => /\) T /.test(readFileSync(`/proc/${pid}/stat`, 'latin1')), { what: 'a stopped server' });
  const stoodAt = performance.now();
  act();
  await waitFor(() => performance.now() - stoodAt > TIMEOUT_MS, { what: 'the timeout' });
  child.kill('SIGCONT');
}
