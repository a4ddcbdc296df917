// Published stat scopes and their holders.

import t from 'tap';
import { WorkerScopes } from '../../../src/server/workers/worker-scopes.js';
import { defineLayout } from '../../../src/stats/layout.js';
import { StatsStore } from '../../../src/stats/store.js';

const LAYOUT = defineLayout({ served: 'counter' });

t.test('starting workers receive a scope while it is held', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const scopes = new WorkerScopes(store);
  const known = () => Object.values(scopes.all).map(({ prefix }) => prefix);
  const [one, other] = [0, 1].map(() => scopes.hold([{ prefix: 'shared.', layout: LAYOUT }]));
  t.strictSame(one!.retire(), []);
  t.strictSame(known(), ['shared.']);
  t.equal(other!.retire().length, 1);
  t.strictSame(known(), []);
});

t.test('a scope that is held again before it is freed keeps its values', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const scopes = new WorkerScopes(store);
  const request = { prefix: 'shared.', layout: LAYOUT };
  const before = scopes.hold([request]);
  store.scope(scopes.ref('shared.', LAYOUT)).increment(LAYOUT.at.served);
  before.retire();
  const after = scopes.hold([request]);
  before.free();
  t.equal(store.value('shared.served'), 1);
  after.discard();
  t.equal(store.value('shared.served'), undefined);
});

t.test('a scope of the process stays, whichever other holders release it', async (t) => {
  const scopes = new WorkerScopes(new StatsStore({ workers: 1 }));
  scopes.add('server.', LAYOUT);
  scopes.hold([{ prefix: 'server.', layout: LAYOUT }]).discard();
  t.equal(Object.keys(scopes.all).length, 1);
});
