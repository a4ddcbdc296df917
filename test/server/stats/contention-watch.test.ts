import t from 'tap';
import { Contention } from '../../../src/common/process/contention.js';
import { ContentionWatch } from '../../../src/server/stats/contention-watch.js';
import { SharedWords, SharedWordsOwner } from '../../../src/upstream/shared-words.js';
import { waitFor } from '../../e2e/harness/wait-for.js';

t.test('a long turn of the primary counts, with its length', async (t) => {
  const watch = new ContentionWatch(1);
  t.teardown(() => watch.close());
  const end = performance.now() + 100;
  while (performance.now() < end);
  await waitFor(() => watch.sums.count > 0, { what: 'the turn to be seen' });
  t.ok(watch.sums.totalNs > 50e6, `${watch.sums.totalNs} ns`);
});

t.test('a worker that loses a race for a shared word counts it, and gets its place nevertheless', async (t) => {
  const watch = new ContentionWatch(2);
  t.teardown(() => watch.close());
  const owner = new SharedWordsOwner();
  const word = owner.allocateCluster();
  const other = new SharedWords(owner.handle(2));
  const worker = new SharedWords({ ...owner.handle(1), contention: watch.bufferOf(0) });
  const { compareExchange } = Atomics;
  t.teardown(() => Object.assign(Atomics, { compareExchange }));
  // Another worker changes the word between this one's read and its exchange.
  const interrupted = (...change: Parameters<typeof compareExchange>) => {
    Object.assign(Atomics, { compareExchange });
    other.acquire(word);
    return compareExchange(...change);
  };
  Object.assign(Atomics, { compareExchange: interrupted });
  t.ok(worker.tryAcquire(word, 2));
  t.equal(worker.read(word), 2);
  t.equal(new Contention(watch.bufferOf(0)).sums.count, 1);
  Object.assign(Atomics, { compareExchange: interrupted });
  other.release(word);
  t.notOk(worker.tryAcquire(word, 2), 'the other one took the last place');
  t.equal(worker.read(word), 2);
  owner.forgetWorker(1);
  t.equal(worker.read(word), 1, 'its share is known');
});
