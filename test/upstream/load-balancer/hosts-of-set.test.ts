import t from 'tap';
import { HostsOfSet } from '../../../src/upstream/load-balancer/hosts-of-set.js';
import { HostWord } from '../../../src/upstream/shared-words.js';
import { Clusters, staticCluster } from '../../server/clusters/clusters.js';

const clusters = new Clusters();
clusters.start([staticCluster('a', ['10.0.0.1', '10.0.0.2', '10.0.0.3'])]);
const { hosts: equal } = clusters.set.byName.get('a')!.snapshot();
const set = { ...equal, weights: Uint32Array.of(1, 1, 3) };

t.test('a list has the properties of its hosts in the set', async (t) => {
  const list = new HostsOfSet(set, [2, 0]);
  t.same([...list.hosts], [2, 0]);
  t.same([...list.weights], [3, 1]);
  t.same(
    [...list.activeWords],
    [2, 0].map((host) => set.blocks[host]! + HostWord.ActiveRequests),
  );
  t.same(list.keys(false), ['10.0.0.3:80', '10.0.0.1:80']);
  t.ok(list.isWeighted);
  t.notOk(new HostsOfSet(set, [0, 1]).isWeighted);
});

t.test('properties are computed once, even if read for each host', async (t) => {
  const list = new HostsOfSet(set, [0, 1, 2]);
  t.equal(list.activeWords, list.activeWords);
});
