// An exception on the primary ends neither the process nor the primary's periodic work, wherever it is thrown.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { CheckedUpstream, checked, http } from '../../clusters/checked-upstream.js';
import { ResourceFile } from '../../dynamic/resource-file.js';
import { startControlPlane } from '../../harness/control-plane.js';
import {
  bootstrap,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  staticCluster,
  tempDir,
  UNBUNDLED,
  waitFor,
} from '../../harness/index.js';
import { PLACES } from './primary-faults.js';

const CLUSTER = 'envoy.config.cluster.v3.Cluster';

const faults = tempDir(t);
const host = await CheckedUpstream.start(t, 'a host');
const plane = await startControlPlane(t);
const files = new ResourceFile(tempDir(t), 'clusters');
const { lds_config } = plane.ads().dynamic_resources as { lds_config: object };
let version = 0;
/** Writes another version of a cluster from a file, and of a listener from a management server. */
function change(): void {
  version++;
  files.write(CLUSTER, staticCluster('file', host.port, { connect_timeout: `${version}s` }));
  plane.set('listener', [
    httpListener('web', 0, { route_config: routeAllTo('checked'), server_name: `version-${version}` }),
  ]);
}
change();
const named = { ...staticCluster('named', []), type: 'STRICT_DNS', dns_refresh_rate: '0.05s' };
const endpoint = { address: { socket_address: { address: 'localhost', port_value: host.port } } };
const baton = await startBaton(t, {
  program: UNBUNDLED,
  nodeArgs: ['--import', new URL('./primary-faults.js', import.meta.url).href],
  env: { BATON_TEST_FAULTS: faults },
  config: bootstrap({
    listeners: [],
    clusters: [
      checked('checked', [host.port], http()),
      { ...named, load_assignment: { cluster_name: 'named', endpoints: [{ lb_endpoints: [{ endpoint }] }] } },
      plane.cluster(),
    ],
    extra: {
      ...plane.ads(),
      dynamic_resources: { ...(plane.ads().dynamic_resources as object), lds_config, cds_config: files.source },
      stats_flush_interval: '0.05s',
    },
  }),
});
await plane.waitForAck('listener');

for (const place of Object.keys(PLACES)) {
  t.test(`the primary survives an exception: ${place}`, async (t) => {
    const before = await errors();
    const log = baton.stderr.length;
    writeFileSync(join(faults, place), '');
    let after = before;
    await waitFor(
      async () => {
        change();
        // A fault of the admin interface closes the connection of its request.
        after = await errors().catch(() => after);
        return after.caught > before.caught;
      },
      { what: 'the fault to be counted' },
    );
    if (place.startsWith('stray')) t.ok(after.uncaught > before.uncaught, 'only the last-resort handler has caught it');
    const line = /\[critical\]\[main\].*(?:injected exception|the exception cannot be shown)/;
    await waitFor(() => line.test(baton.stderr.slice(log)), { what: 'its log line' });
    await everythingContinues();
    t.equal(baton.exit, undefined);
  });
}

t.test('the process exits cleanly', async () => baton.stop());

async function errors(): Promise<{ caught: number; uncaught: number }> {
  const stats = await baton.stats('server.');
  return { caught: stats.envoy_bug_failures ?? 0, uncaught: stats.uncaught_exceptions ?? 0 };
}

/** Names are resolved, hosts checked, files and management servers followed, and requests served. */
async function everythingContinues(): Promise<void> {
  const before = await progress();
  change();
  const wanted = { version: `version-${version}`, timeout: `"connect_timeout":"${version}s"` };
  const isDone = async () => {
    const now = await progress();
    if (now.lookups === before.lookups || now.checks === before.checks) return false;
    const { body } = await baton.admin('/config_dump?resource=dynamic_active_clusters');
    if (!body.replace(/\s/g, '').includes(wanted.timeout)) return false;
    const { headers } = await httpRequest(await baton.listenerPort('web'), '/');
    return headers.server === wanted.version;
  };
  await waitFor(isDone, { what: `version ${version} to be in use` });
}

async function progress(): Promise<{ lookups: number; checks: number }> {
  const lookups = (await baton.stat('cluster.named.update_attempt')) ?? 0;
  const checks = (await baton.stat('cluster.checked.health_check.attempt')) ?? 0;
  return { lookups, checks };
}
