// stats_config, stats_flush_on_admin, --stats-tag and the watchdogs, in the running program.

import t from 'tap';
import { bootstrap, startBaton, staticCluster, waitFor } from '../../harness/index.js';

t.test('tags, bucket bounds and rejected stats are as configured', async (t) => {
  const baton = await startBaton(t, {
    args: ['--stats-tag', 'site:berlin', '-l', 'warning'],
    config: bootstrap({
      listeners: [],
      clusters: [staticCluster('shop_v2', 9), staticCluster('other', 9)],
      extra: {
        stats_flush_on_admin: true,
        stats_server_version_override: '20261123',
        stats_config: {
          stats_tags: [
            { tag_name: 'version', regex: '^cluster\\.\\w+?(_v(\\d+))\\.' },
            { tag_name: 'tier', fixed_value: 'edge' },
          ],
          stats_matcher: { exclusion_list: { patterns: [{ prefix: 'cluster.other.' }, { suffix: '.uptime' }] } },
          histogram_bucket_settings: [{ match: { prefix: 'server.init' }, buckets: [0.5, 3_000_000] }],
        },
      },
    }),
  });
  const { body: text } = await baton.admin('/stats');
  t.match(text, /^cluster\.shop_v2\.membership_total: 1$/m, 'plain names are unchanged');
  t.match(text, /^server\.version: 20261123$/m);
  t.notMatch(text, 'cluster.other.');
  t.notMatch(text, 'server.uptime');
  t.notMatch(text, 'berlin');
  const { body: buckets } = await baton.admin('/stats?filter=initialization_time_ms&histogram_buckets=cumulative');
  t.match(buckets, /^server\.initialization_time_ms: B0\.5\(\d,0\) B3e\+06\(\d,1\)\n$/, 'flushed by the request');
  const { body: metrics } = await baton.admin('/stats/monitoring?filter=membership_total');
  t.match(
    metrics,
    'envoy_cluster_membership_total{site="berlin",tier="edge",envoy_cluster_name="shop_v2",version="2"} 1\n',
  );
  await baton.stop();
});

t.test('a tag without an expression that is not a default tag is refused', async (t) => {
  const config = bootstrap({
    listeners: [],
    clusters: [],
    extra: { stats_config: { stats_tags: [{ tag_name: 'x' }] } },
  });
  const baton = await startBaton(t, { config, wait: 'spawned' });
  t.equal((await baton.exited).code, 1);
  t.match(baton.stderr, "No regex specified for tag specifier and no default regex for name: 'x'");
});

t.test('an event loop blocked for longer than its watchdog timeout is counted', async (t) => {
  const quick = { miss_timeout: '0.001s', megamiss_timeout: '3600s' };
  const watchdogs = { main_thread_watchdog: quick, worker_watchdog: quick };
  for (const extra of [{ watchdogs }, { watchdog: quick }]) {
    const baton = await startBaton(t, { config: bootstrap({ listeners: [], clusters: [], extra }) });
    const names = ['main_thread', 'server.main_thread', 'workers', 'server.worker_0'];
    for (const name of names) {
      await waitFor(async () => ((await baton.stat(`${name}.watchdog_miss`)) ?? 0) > 0, { what: `a miss of ${name}` });
      t.equal(await baton.stat(`${name}.watchdog_mega_miss`), 0);
    }
    t.equal(await baton.stat('thread_local_cluster_manager.worker_0.clusters_inflated'), 0);
    await baton.stop();
  }
});
