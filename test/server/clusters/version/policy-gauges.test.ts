// The gauges of rings and tables describe what workers build from the hosts.

import t from 'tap';
import type { Cluster } from '../../../../src/config/generated/api.js';
import { EXTENSIONS } from '../../../../src/extensions/index.js';
import { ExtensionRegistry } from '../../../../src/extensions/registry.js';
import { Runtime } from '../../../../src/runtime/runtime.js';
import { PolicyGauges } from '../../../../src/server/clusters/version/policy-gauges.js';
import { ResourcePool } from '../../../../src/server/clusters/version/resource-pool.js';
import { StatsStore } from '../../../../src/stats/store.js';
import { DEFAULT_ASSIGNMENT_POLICY as POLICY } from '../../../../src/upstream/assignment-policy.js';
import { HealthFlag } from '../../../../src/upstream/hosts/health-flags.js';
import { setValues } from '../../../runtime/values.js';
import { Clusters, staticCluster } from '../clusters.js';

/** The gauges of a cluster of two hosts, of which the second has more weight. */
function gaugesOf(config: Partial<Cluster>) {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1', '10.0.0.2'], config)]);
  const { hosts: equal, spec } = clusters.set.byName.get('a')!.snapshot();
  const hosts = { ...equal, weights: Uint32Array.of(1, 3) };
  const { words } = clusters;
  const store = new StatsStore({ workers: 1 });
  const resources = new ResourcePool({ store, words, retire: () => {} }).acquire('a', 'a');
  const runtime = new Runtime();
  const policy = new ExtensionRegistry(EXTENSIONS).policyNamed(spec.loadBalancer.policy);
  const gauges = new PolicyGauges(policy.gauges!, spec, resources, { runtime, locality: undefined });
  const failing = { ...hosts, healthFlags: Int32Array.of(0, HealthFlag.FailedOutlierCheck) };
  return { failing, gauges, hosts, resources, runtime, value: (name: string) => store.value(`cluster.a.${name}`) };
}

t.test('ring gauges: the size, and the entries of hosts by weight', async (t) => {
  const ring = { lb_policy: 'RING_HASH', ring_hash_lb_config: { minimum_ring_size: '8' } } as const;
  const { failing, gauges, hosts, resources, runtime, value } = gaugesOf(ring);
  const shown = () =>
    ['size', 'min_hashes_per_host', 'max_hashes_per_host'].map((name) => value(`ring_hash_lb.${name}`));
  gauges.update(hosts, POLICY);
  t.same(shown(), [8, 2, 6]);
  gauges.update(failing, POLICY);
  t.same(shown(), [8, 8, 8], 'a failing host has none');
  setValues(runtime, { 'upstream.healthy_panic_threshold': '60' });
  gauges.update(failing, POLICY);
  t.same(shown(), [8, 2, 6], 'but has some in panic');
  gauges.update(failing, { ...POLICY, overprovisioning: 200 });
  t.same(shown(), [8, 8, 8], 'half of the hosts carry the load: no panic');
  resources.release();
  t.same(shown(), [undefined, undefined, undefined]);
});

t.test('table gauges: the entries of hosts by weight', async (t) => {
  const { gauges, hosts, value } = gaugesOf({ lb_policy: 'MAGLEV', maglev_lb_config: { table_size: '7' } });
  gauges.update(hosts, POLICY);
  t.same([value('maglev_lb.min_entries_per_host'), value('maglev_lb.max_entries_per_host')], [2, 5]);
  gauges.update({ ...hosts, priorities: new Uint8Array(), healthFlags: new Int32Array() }, POLICY);
  t.same([value('maglev_lb.min_entries_per_host'), value('maglev_lb.max_entries_per_host')], [0, 0], 'without hosts');
});

t.test('a cluster with another policy has none', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1'])]);
  t.equal(clusters.store.value('cluster.a.membership_total'), 1);
  t.equal(clusters.store.value('cluster.a.ring_hash_lb.size'), undefined);
});
