// An update of many clusters yields to other events between its parts; a small one takes one turn.

import t from 'tap';
import type { Cluster } from '../../../src/config/generated/api.js';
import type { Resource, Update } from '../../../src/xds/resource.js';
import { Clusters, staticCluster } from './clusters.js';

const MANY = 5000;

t.test('many clusters are added and removed in steps, and workers receive them in parts', async (t) => {
  const clusters = new Clusters();
  clusters.start();
  clusters.startCds();
  const seen: number[] = [];
  const steps = clusters.cds.update(update('1', named(MANY)));
  while (steps.next().done !== true) {
    seen.push(clusters.set.byName.size);
    t.equal(clusters.cds.version, '', 'the version is not in use before all of it is');
    await clusters.turn();
  }
  await clusters.turn();
  t.ok(seen.length >= 20, `${seen.length} steps`);
  t.ok(seen.every((size, index) => size - (seen[index - 1] ?? 0) <= 256));
  t.equal(clusters.set.byName.size, MANY);
  t.equal(clusters.cds.version, '1');
  t.ok(
    clusters.published.every((each) => each.packedClusters.length <= 512),
    'no part is large',
  );
  const published = clusters.published.flatMap((each) => each.clusters.map(({ spec }) => spec.name));
  t.same(published, names(MANY), 'each once, in order');

  const before = clusters.published.length;
  const removal = clusters.cds.update(update('2', []));
  let turns = 0;
  for (; removal.next().done !== true; turns++) await clusters.turn();
  await clusters.turn();
  t.ok(turns >= 20, `${turns} steps`);
  t.equal(clusters.set.byName.size, 0);
  t.same(
    clusters.published.slice(before).flatMap((each) => each.removedClusters),
    names(MANY),
  );
  t.equal(clusters.value('cluster_manager.cluster_removed'), MANY);
});

t.test('unchanged clusters take few steps, and a small update one', (t) => {
  const clusters = new Clusters();
  clusters.start();
  clusters.startCds();
  const few = clusters.cds.update(update('1', named(10)));
  t.equal(few.next().done, true);
  t.equal(clusters.set.byName.size, 10);
  const all = named(1000);
  for (const _ of clusters.cds.update(update('2', all)));
  const more = clusters.cds.update(update('3', [...all, ...named(10, 'more')]));
  t.equal(more.next().done, true);
  t.equal(clusters.set.byName.size, 1010);
  t.end();
});

function update(version: string, resources: readonly Resource<Cluster>[]): Update<Cluster> {
  return { version, isComplete: true, resources, refused: [], removed: [] };
}

function named(count: number, prefix = 'c'): Resource<Cluster>[] {
  return names(count, prefix).map((name) => {
    return { name, version: '1', message: staticCluster(name, ['10.0.0.1']), aliases: [], sensitive: [] };
  });
}

function names(count: number, prefix = 'c'): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`);
}
