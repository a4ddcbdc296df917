// Runtime layers that management servers set, with sources that the test controls.

import t from 'tap';
import { LayeredRuntime } from '../../../src/runtime/layered-runtime.js';
import type { RuntimeChange } from '../../../src/runtime/snapshot.js';
import { InitManager } from '../../../src/server/init/init-manager.js';
import { RtdsLayers } from '../../../src/server/runtime/rtds-layers.js';
import { RuntimeStats } from '../../../src/stats/layouts/runtime.js';
import { StatsStore } from '../../../src/stats/store.js';
import { FakeSources, unreadable } from '../../xds/fake-sources.js';

const SOURCE = { ads: {} };
const LAYERS = [
  { name: 'base', static_layer: { a: 'base', b: 'base' } },
  { name: 'remote', rtds_layer: { name: 'first', rtds_config: SOURCE } },
  { name: 'more', rtds_layer: { name: 'second', rtds_config: SOURCE } },
];

function start() {
  const store = new StatsStore({ workers: 1 });
  const scope = store.addScope('runtime.', RuntimeStats);
  const changes: RuntimeChange[] = [];
  const runtime = new LayeredRuntime({
    config: { layers: LAYERS },
    serviceCluster: '',
    stats: store.scope(scope),
    changed: (change) => changes.push(change),
  });
  const sources = new FakeSources();
  const init = new InitManager('RTDS');
  const layers = new RtdsLayers();
  layers.start(LAYERS, runtime, sources, init);
  return {
    sources,
    init,
    layers,
    changes,
    names: () => runtime.layers.map(({ name }) => name),
    texts: () => Object.fromEntries([...runtime.runtime.values].map(([key, { text }]) => [key, text])),
    layerCount: () => store.valueOf(scope, RuntimeStats.at.num_layers),
  };
}

t.test('a layer is empty until its resource arrives, and is awaited', async (t) => {
  const { sources, init, names, texts, layerCount, changes } = start();
  t.strictSame(names(), ['base', 'remote', 'more'], 'in the order of the configuration');
  t.equal(layerCount(), 3);
  t.strictSame(init.unreadyTargets, ['RTDS first', 'RTDS second']);
  t.match(sources.to('first').request, { type: 'runtime', statPrefix: 'runtime.', source: SOURCE });

  t.strictSame(
    sources.to('first').deliver({ resources: [{ name: 'first', message: { layer: { a: 1, c: { d: true } } } }] }),
    [],
  );
  t.strictSame(init.unreadyTargets, ['RTDS second']);
  t.strictSame(texts(), { a: '1', b: 'base', 'c.d': 'true' });
  sources.to('second').deliver({ resources: [{ name: 'second', message: { layer: { a: 2 } } }] });
  t.strictSame(init.unreadyTargets, []);
  t.match(texts(), { a: '2' }, 'later layers win');
  t.equal(changes.length, 2, 'workers are notified each time');
});

t.test('a removal empties the layer; a resource that is not mentioned stays', async (t) => {
  const { sources, texts, changes } = start();
  const first = sources.to('first');
  const message = { layer: { a: 'remote' } };
  first.deliver({ resources: [{ name: 'first', message }] });
  first.deliver({ resources: [{ name: 'first', message }] });
  t.equal(changes.length, 1, 'the same resource changes nothing');
  t.match(first.deliver({ version: '2' }), [{ name: 'first', details: /no RTDS resource 'first'/ }]);
  t.match(texts(), { a: 'remote' });
  t.strictSame(first.deliver({ isComplete: false, removed: ['first'] }), []);
  t.match(texts(), { a: 'base' });
  first.deliver({ resources: [{ name: 'first', message }] });
  t.match(texts(), { a: 'remote' }, 'it may return');
});

t.test('an unusable resource leaves the layer as it was, and is not awaited', async (t) => {
  const { sources, init, texts } = start();
  const wrong = { name: 'first', message: { layer: { a: null, b: { c: [1] } } } };
  t.strictSame(sources.to('first').deliver({ resources: [wrong] }), [
    { name: 'first', details: "invalid runtime value for 'a': null; invalid runtime value for 'b.c': a list" },
  ]);
  t.strictSame(sources.to('second').deliver({ refused: [unreadable('second', 'garbage')] }), []);
  t.strictSame(init.unreadyTargets, []);
  t.strictSame(texts(), { a: 'base', b: 'base' });
});

t.test('a silent source is awaited until the fetch timeout; close() closes all subscriptions', async (t) => {
  const { sources, init, layers } = start();
  sources.to('first').timeOut();
  t.strictSame(init.unreadyTargets, ['RTDS second']);
  layers.close();
  t.ok(sources.subscriptions.every(({ isClosed }) => isClosed));
});
