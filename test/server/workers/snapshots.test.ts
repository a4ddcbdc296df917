// The resources of a removed host are reused when no worker can write to them any more.

import t from 'tap';
import { RemovedHost } from '../../../src/server/clusters/version/cluster-resources.js';
import { Snapshots } from '../../../src/server/workers/snapshots.js';
import { HostStats } from '../../../src/stats/layouts/cluster.js';
import { StatsStore } from '../../../src/stats/store.js';
import { ThreadStats } from '../../../src/stats/thread-stats.js';
import { HostWord, SharedWords, SharedWordsOwner } from '../../../src/upstream/shared-words.js';

t.test('a removed host keeps its words and stats until its last request has ended', (t) => {
  const store = new StatsStore({ workers: 2 });
  const owner = new SharedWordsOwner(64 * 1024);
  const snapshots = new Snapshots(store, owner, 2);
  const block = owner.allocateHost();
  const scope = store.addScope('cluster.a.endpoint.127.0.0.1:80.', HostStats, { hidden: true });
  const words = new SharedWords(owner.handle(1));
  const stats = new ThreadStats(store.attachment(0)).scope(scope);

  words.acquire(block + HostWord.ActiveRequests);
  stats.increment(HostStats.at.cx_active);
  stats.increment(HostStats.at.rq_active);
  snapshots.retire(new RemovedHost({ store, words: owner }, block, scope, () => {}));
  const { version } = snapshots.next({});
  t.equal(snapshots.applied(0, version), false);
  t.equal(snapshots.applied(1, version), true);
  t.not(owner.allocateHost(), block, 'all workers run the snapshot, but a request is still in flight');

  words.release(block + HostWord.ActiveRequests);
  stats.decrement(HostStats.at.rq_active);
  snapshots.reclaim();
  t.not(owner.allocateHost(), block, 'its connection is still open');

  stats.decrement(HostStats.at.cx_active);
  snapshots.reclaim();
  t.not(owner.allocateHost(), block, 'the turn in which it ended may not be over');
  t.equal(snapshots.needsVersion, true);

  const next = snapshots.next({});
  t.equal(snapshots.needsVersion, false);
  snapshots.applied(0, next.version);
  snapshots.applied(1, next.version);
  t.equal(owner.allocateHost(), block);
  t.equal(owner.read(block + HostWord.ActiveRequests), 0);
  t.end();
});

t.test('many items retired at once are freed in several turns', async (t) => {
  const snapshots = new Snapshots(new StatsStore({ workers: 1 }), new SharedWordsOwner(64 * 1024), 1);
  let freed = 0;
  const free = () => void freed++;
  for (let count = 0; count < 3000; count++) snapshots.retire({ isRevived: false, isIdle: () => true, free });
  snapshots.applied(0, snapshots.next({}).version);
  t.equal(freed, 0);
  snapshots.applied(0, snapshots.next({}).version);
  const atOnce = freed;
  snapshots.reclaim();
  t.equal(freed, atOnce, 'a second call in a turn frees no more');
  t.ok(atOnce > 0 && atOnce < 1000, `${atOnce} in the first turn`);
  for (let turn = 0; turn < 20 && freed < 3000; turn++) await new Promise((resolve) => setImmediate(resolve));
  t.equal(freed, 3000);
});

t.test('a removed host keeps its words and stats until all workers run the snapshot', (t) => {
  const store = new StatsStore({ workers: 2 });
  const owner = new SharedWordsOwner(64 * 1024);
  const snapshots = new Snapshots(store, owner, 2);
  const block = owner.allocateHost();
  const scope = store.addScope('cluster.a.endpoint.127.0.0.1:80.', HostStats);
  snapshots.retire(new RemovedHost({ store, words: owner }, block, scope, () => {}));
  const { version } = snapshots.next({});
  snapshots.applied(0, version);
  t.not(owner.allocateHost(), block);
  snapshots.applied(1, version);
  const next = snapshots.next({});
  snapshots.applied(1, next.version);
  t.not(owner.allocateHost(), block);
  snapshots.applied(0, next.version);
  t.equal(owner.allocateHost(), block);
  t.end();
});

t.test('a version that a worker cannot use is reported to those that wait for it, and not to later ones', async (t) => {
  const snapshots = new Snapshots(new StatsStore({ workers: 2 }), new SharedWordsOwner(64 * 1024), 2);
  const before = snapshots.version;
  const { version } = snapshots.next({});
  const outcome = snapshots.outcome(before);
  snapshots.applied(0, version);
  snapshots.failed({ version: version, isComplete: false, message: 'it cannot be built' });
  await t.rejects(outcome, { message: 'it cannot be built' });
  await t.rejects(snapshots.outcome(before), { message: 'it cannot be built' }, 'although it was reported before');

  const { version: next } = snapshots.next({});
  const later = snapshots.outcome(version);
  snapshots.failed({ version: version, isComplete: false, message: 'another worker cannot either' });
  snapshots.applied(0, next);
  snapshots.applied(1, next);
  await later;
});
