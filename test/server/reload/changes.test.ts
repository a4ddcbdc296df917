// How a reload changes clusters and runtime, and how it is undone; the workers are a promise that fails on demand.

import t from 'tap';
import type { Cluster } from '../../../src/config/generated/api.js';
import { carryOut } from '../../../src/server/reload/carry-out.js';
import { changesOf, type Reloaded } from '../../../src/server/reload/changes.js';
import type { ReloadPlan } from '../../../src/server/reload/comparison/comparison.js';

const NOTHING: ReloadPlan = {
  clusters: [],
  removedClusters: [],
  listeners: [],
  removedListeners: [],
  routes: [],
  places: new Map(),
  runtime: undefined,
};

/** A server whose log records the actions; `settles` has the result of each wait for workers. */
function fakeServer(names: readonly string[], settles: readonly boolean[] = []) {
  const log: string[] = [];
  const outcomes = settles.values();
  const active = new Map(names.map((name) => [name, { name, version: 1 } as Cluster]));
  const clusters = {
    warming: new Map(),
    get byName() {
      return new Map(
        [...active].map(([name, config]) => [name, { config, origin: { isAddedViaApi: name === 'dynamic' } }]),
      );
    },
    removeStatic: (names: readonly string[]) => {
      for (const name of names) active.delete(name);
      log.push(`remove ${names}`);
    },
    stage: (set: readonly Cluster[]) => {
      log.push(`stage ${set.map(({ name }) => name)}`);
      return {
        waiting: new Set<string>(),
        ready: Promise.resolve(),
        commit: () => {
          for (const config of set) active.set(config.name!, config);
          log.push(`commit ${set.map(({ name }) => name)}`);
        },
        discard: () => log.push('discard'),
      };
    },
  };
  const drainingClusters = {
    remove: (names: readonly string[]) => names.length > 0 && clusters.removeStatic(names),
    keep: () => [],
  };
  const server = {
    clusters,
    drainingClusters,
    runtime: { replaceStaticLayers: (layers: readonly object[]) => log.push(`runtime ${JSON.stringify(layers)}`) },
    settle: async () => {
      log.push('settle');
      if (outcomes.next().value === false) throw new Error('a worker cannot use it');
    },
  } as unknown as Reloaded;
  return { server, log, active };
}

t.test('clusters are added first, and removed last', async (t) => {
  const { server, log } = fakeServer(['a', 'b']);
  const plan = {
    ...NOTHING,
    clusters: [{ name: 'c' }, { name: 'a' }],
    removedClusters: ['b'],
    runtime: { before: [{ name: 'old' }], after: [{ name: 'new' }] },
  };
  await carryOut(changesOf(plan, server));
  t.strictSame(log, ['stage c,a', 'commit c,a', 'settle', 'runtime [{"name":"new"}]', 'remove b', 'settle']);
});

t.test('workers that cannot use the new configuration get the old one back', async (t) => {
  const { server, log, active } = fakeServer(['a', 'b'], [true, false]);
  const asItWas = new Map(active);
  const plan = {
    ...NOTHING,
    clusters: [{ name: 'c' }, { name: 'a', lb_policy: 'RANDOM' as const }],
    removedClusters: ['b'],
    runtime: { before: [{ name: 'old' }], after: [{ name: 'new' }] },
  };
  await t.rejects(carryOut(changesOf(plan, server)), { message: 'a worker cannot use it', isUndone: true });
  t.strictSame(log.slice(log.lastIndexOf('remove b')), [
    ...['remove b', 'settle', 'stage b', 'commit b', 'settle'],
    'runtime [{"name":"old"}]',
    ...['stage a', 'commit a', 'remove c', 'settle'],
  ]);
  t.strictSame(active, asItWas);
});

t.test('restored clusters are used even without hosts', async (t) => {
  const { server, log, active } = fakeServer(['a', 'b'], [false]);
  const { stage } = server.clusters as unknown as { stage: (set: readonly Cluster[]) => object };
  const clusters = {
    ...server.clusters,
    stage: (set: readonly Cluster[]) => ({ ...stage(set), ready: Promise.reject(new Error('no hosts')) }),
  };
  const plan = { ...NOTHING, removedClusters: ['b'] };
  const { byName } = server.clusters;
  await t.rejects(carryOut(changesOf(plan, { ...server, clusters: { ...clusters, byName } } as unknown as Reloaded)), {
    message: 'a worker cannot use it; and it could not be undone: no hosts',
  });
  t.strictSame(log, ['remove b', 'settle', 'stage b', 'commit b']);
  t.strictSame([...active.keys()], ['a', 'b']);
});

t.test('new clusters are removed even when restored ones have no hosts', async (t) => {
  const { server, log, active } = fakeServer(['a'], [false]);
  const asItWas = new Map(active);
  const { stage } = server.clusters as unknown as { stage: (set: readonly Cluster[]) => object };
  let stages = 0;
  const clusters = {
    ...server.clusters,
    stage: (set: readonly Cluster[]) => {
      const isComingBack = stages++ > 0;
      return { ...stage(set), ...(isComingBack && { ready: Promise.reject(new Error('no hosts')) }) };
    },
  };
  const { byName } = server.clusters;
  const plan = { ...NOTHING, clusters: [{ name: 'c' }, { name: 'a', lb_policy: 'RANDOM' as const }] };
  await t.rejects(carryOut(changesOf(plan, { ...server, clusters: { ...clusters, byName } } as unknown as Reloaded)), {
    message: 'a worker cannot use it; and it could not be undone: no hosts',
  });
  t.strictSame(log.slice(log.indexOf('stage a')), ['stage a', 'commit a', 'remove c', 'settle']);
  t.strictSame(active, asItWas);
});

t.test('a dynamic cluster keeps its name', async (t) => {
  const { server, log } = fakeServer(['dynamic']);
  const plan = { ...NOTHING, clusters: [{ name: 'dynamic' }] };
  await t.rejects(carryOut(changesOf(plan, server)), { message: "a dynamic cluster has the name 'dynamic' already" });
  t.strictSame(log, []);
});

t.test('a dynamic cluster that was added while others were warming keeps its name too', async (t) => {
  const { server, log } = fakeServer(['a']);
  const { stage, warming } = server.clusters as unknown as {
    stage: (set: readonly Cluster[]) => object;
    warming: Map<string, object>;
  };
  const clusters = {
    ...server.clusters,
    stage: (set: readonly Cluster[]) => {
      warming.set('c', { origin: { isAddedViaApi: true } });
      return stage(set);
    },
  };
  const plan = { ...NOTHING, clusters: [{ name: 'c' }] };
  await t.rejects(carryOut(changesOf(plan, { ...server, clusters } as unknown as Reloaded)), {
    message: "a dynamic cluster has the name 'c' already",
    isUndone: true,
  });
  t.strictSame(log, ['stage c', 'discard']);
});
