// The limit of connections of all workers together.

import t from 'tap';
import { ConnectionLimit, UNLIMITED } from '../../src/listener/connection-limit.js';
import type { RuntimeInteger } from '../../src/runtime/runtime.js';
import { SharedWords, SharedWordsOwner } from '../../src/upstream/shared-words.js';

t.test('workers share an exact count while there is a limit, which may be set and removed at any time', async (t) => {
  const owner = new SharedWordsOwner();
  const word = owner.allocateCluster();
  const runtime = { value: UNLIMITED };
  const workers = [1, 2].map((thread) => {
    return new ConnectionLimit(new SharedWords(owner.handle(thread)), word, runtime as RuntimeInteger);
  });
  const all = new SharedWords(owner.handle(1));
  const set = (value: number) => {
    runtime.value = value;
    for (const each of workers) each.update();
  };
  const [one, other] = workers as [ConnectionLimit, ConnectionLimit];
  for (const each of [one, one, other]) t.ok(each.tryAcquire());
  t.equal(all.read(word), 0);
  for (let times = 0; times < 3; times++) {
    set(4);
    t.equal(all.read(word), 3);
    t.ok(other.tryAcquire());
    t.notOk(one.tryAcquire());
    set(5);
    t.ok(one.tryAcquire(), 'another limit');
    one.release();
    other.release();
    set(UNLIMITED);
    t.equal(all.read(word), 0);
  }
  for (const each of [one, one, other]) each.release();
  set(4);
  t.equal(all.read(word), 0, 'no connection is counted');
});
