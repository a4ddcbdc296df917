// Clusters for which stats or shared words are exhausted: the running ones continue, and nothing of the new ones is kept.

import t from 'tap';
import type { StatsStore } from '../../../src/stats/store.js';
import { CLUSTER_WORDS, HOST_WORDS } from '../../../src/upstream/shared-words.js';
import { assignment, Clusters, edsCluster, resource, staticCluster } from './clusters.js';

const WORD_BYTES = 4;
const FULL = 'Array buffer allocation failed';

t.test('a cluster whose stats cannot be allocated leaves neither stats nor words behind', async (t) => {
  const clusters = new Clusters({ wordsBytes: 2 * CLUSTER_WORDS * WORD_BYTES });
  clusters.start();
  const before = clusters.store.size;
  const thresholds = [{ track_remaining: true }, { priority: 'HIGH', track_remaining: true }] as const;
  const a = staticCluster('a', [], { circuit_breakers: { thresholds }, outlier_detection: {} });
  const scopes = 7;
  for (let room = 0; room < scopes; room++) {
    const restore = leaveRoomFor(room, clusters.store);
    t.throws(() => clusters.set.setStatic([a]), { message: FULL });
    restore();
    await clusters.turn();
    for (let round = 0; round < 4; round++) clusters.settle();
    t.equal(clusters.store.size, before, `with room for ${room} of its scopes`);
  }
  leaveRoomFor(scopes + 4, clusters.store);
  clusters.set.setStatic([a, staticCluster('b', [])]);
  t.same([...clusters.set.byName.keys()], ['a', 'b'], 'there are words for both');
});

t.test('a cluster whose stats could not be allocated can use the names of its hosts later', (t) => {
  const clusters = new Clusters();
  clusters.start();
  const a = staticCluster('a', ['10.0.0.1']);
  const restore = leaveRoomFor(0, clusters.store);
  t.throws(() => clusters.set.setStatic([a]), { message: FULL });
  restore();
  clusters.set.setStatic([a]);
  t.equal(clusters.store.scopesUnder('cluster.a.endpoint.10.0.0.1_80.').length, 1);
  t.end();
});

t.test('a cluster keeps its previous hosts when memory for new ones is short', async (t) => {
  const clusters = new Clusters({ wordsBytes: (CLUSTER_WORDS + 2 * HOST_WORDS) * WORD_BYTES });
  clusters.start();
  clusters.startCds().deliver({ resources: [resource(edsCluster('a'))] });
  const eds = clusters.sources.to('a');
  eds.deliver({ resources: [resource(assignment('a', ['10.0.0.1']))] });
  eds.deliver({ resources: [resource(assignment('a', ['10.0.0.1', '10.0.0.2', '10.0.0.3'], { weight: 7 }))] });
  t.same(clusters.hosts('a'), ['10.0.0.1:80']);
  t.equal(clusters.value('cluster.a.update_failure'), 1);
  t.equal(clusters.value('cluster.a.membership_total'), 1);
  // A version with too many hosts starts with those of the previous version.
  clusters.set.setStatic([staticCluster('a', ['10.0.0.1', '10.0.0.2', '10.0.0.3'])]);
  t.same([clusters.hosts('a'), clusters.set.warming.size], [['10.0.0.1:80'], 0]);

  await clusters.turn();
  for (let round = 0; round < 4; round++) clusters.settle();
  clusters.set.setStatic([staticCluster('a', ['10.0.0.1', '10.0.0.4'])]);
  t.same(clusters.hosts('a'), ['10.0.0.1:80', '10.0.0.4:80'], "the others' memory is available again");
});

/** Makes all memory appear used after so many more scopes. The returned function ends that. */
function leaveRoomFor(scopes: number, store: StatsStore): () => void {
  const add = store.addScope.bind(store);
  store.addScope = (...scope) => {
    if (scopes-- === 0) throw new RangeError(FULL);
    return add(...scope);
  };
  return () => {
    store.addScope = add;
  };
}
