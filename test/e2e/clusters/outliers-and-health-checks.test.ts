// Outlier detection and health checks of the same hosts: a passed check unejects a host unless that is disabled.

import t from 'tap';
import { httpRequest, waitFor } from '../harness/index.js';
import { CheckedUpstream, checked, flags, http, startWith } from './checked-upstream.js';

const DETECTION = {
  consecutive_5xx: 3,
  base_ejection_time: '600s',
  max_ejection_time: '600s',
  max_ejection_percent: 100,
};

/** Starts a host whose checks pass and whose requests fail, and waits until it is ejected. */
async function ejected(more: Record<string, unknown>) {
  const host = await CheckedUpstream.start(t, 'a');
  host.status = 500;
  const cluster = checked('api', [host.port], http(), { outlier_detection: { ...DETECTION, ...more } });
  const baton = await startWith(t, cluster);
  const port = await baton.listenerPort('http');
  for (let i = 0; i < 3; i++) await httpRequest(port);
  await baton.waitForStat('cluster.api.outlier_detection.ejections_enforced_consecutive_5xx', 1);
  return { baton, host, port };
}

t.test('a passed check unejects a host before its time is over', async (t) => {
  const { baton, host, port } = await ejected({});
  await baton.waitForStat('cluster.api.outlier_detection.ejections_active', 0);
  t.same(await flags(baton), { [host.port]: 'healthy' });
  host.status = 200;
  await waitFor(async () => (await httpRequest(port)).status === 200);
});

t.test('a passed check does not uneject when that is disabled', async (t) => {
  const { baton, host, port } = await ejected({ successful_active_health_check_uneject_host: false });
  const before = host.checks.length;
  await waitFor(() => host.checks.length > before + 3, { what: 'checks that pass' });
  t.same(await flags(baton), { [host.port]: '/failed_outlier_check' });
  t.equal(await baton.stat('cluster.api.outlier_detection.ejections_active'), 1);
  t.equal((await httpRequest(port)).status, 503);
});
