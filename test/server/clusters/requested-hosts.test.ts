// The primary's side of hosts that requests name: how often they are published, and which are refused.

import t from 'tap';
import type { Cluster } from '../../../src/config/generated/api.js';
import { Clusters } from './clusters.js';

const ANY: Cluster = { name: 'any', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED' };
const OUTSIDE = {
  name: 'outside',
  lb_policy: 'CLUSTER_PROVIDED',
  cluster_type: {
    name: 'envoy.clusters.dynamic_forward_proxy',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig',
      dns_cache_config: { name: 'outside' },
    },
  },
} as Cluster;

async function start(config: Cluster) {
  const clusters = new Clusters();
  clusters.start([config]);
  await clusters.turn();
  const cluster = config.name!;
  const { specVersion } = clusters.set.byName.get(cluster)!.snapshot();
  return {
    clusters,
    request: (key: string) => clusters.set.requestHost({ cluster, specVersion, key }),
    hosts: () => clusters.hosts(cluster).length,
  };
}

for (const config of [ANY, OUTSIDE]) {
  t.test(`${config.name}: many hosts are published together, and not too often`, async (t) => {
    const { clusters, hosts, request } = await start(config);
    const before = clusters.published.length;
    for (let octet = 0; octet < 200; octet++) request(`10.0.0.${octet}:80`);
    await clusters.turn();
    await clusters.turn();
    t.equal(hosts(), 200);
    t.equal(clusters.published.length, before + 1);
    request('10.0.1.0:80');
    request('10.0.1.1:80');
    await clusters.turn();
    t.equal(hosts(), 200);
    clusters.advance(100);
    await clusters.turn();
    t.equal(hosts(), 202);
    t.equal(clusters.published.length, before + 2);
    t.same(clusters.refusals, []);
  });
}

t.test('what is not an address with port, or another text of it, is refused', async (t) => {
  const { clusters, hosts, request } = await start(ANY);
  const wrong = ['', 'a:80', '10.0.0.1', '/run/x.sock', '[::ffff:10.0.0.1]:80', '[0::1]:80', '10.0.0.1:080'];
  for (const key of wrong) request(key);
  await clusters.turn();
  t.same(
    clusters.refusals.map(({ key }) => key),
    wrong,
  );
  t.equal(hosts(), 0);
});
