// Due checks share the primary with all its other work.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { Random } from '../../../../src/common/random.js';
import { nextTurn } from '../../../../src/common/time/next-turn.js';
import { TimingWheel } from '../../../../src/io/time/timing-wheel.js';
import { Runtime } from '../../../../src/runtime/runtime.js';
import { PrimaryCheckThread } from '../../../../src/server/clusters/health-checks/primary-check-thread.js';
import { StatsStore } from '../../../../src/stats/store.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function checkThread() {
  const failures: unknown[] = [];
  const thread = new PrimaryCheckThread({
    store: new StatsStore({ workers: 1 }),
    timers: new TimingWheel({ nowMs: 0, onError: () => {} }),
    random: new Random(1),
    runtime: new Runtime(),
    calls: () => {
      throw new Error('nobody connects');
    },
    failed: (_what, error) => failures.push(error),
  });
  return { thread, failures };
}

t.test('of checks due at once some start in each turn, in order', async (t) => {
  const { thread } = checkThread();
  const begun: number[] = [];
  for (let check = 0; check < 100; check++) thread.schedule(() => begun.push(check));
  t.same(begun, [], 'none before the end of the turn');
  for (let before = -1; begun.length > before; ) {
    before = begun.length;
    await nextTurn();
    t.ok(begun.length - before <= 32, `${begun.length - before} in one turn`);
  }
  t.same(
    begun,
    Array.from({ length: 100 }, (_, check) => check),
  );
  thread.schedule(() => begun.push(100));
  await nextTurn();
  t.equal(begun.at(-1), 100, 'and so do later ones');
});

t.test('a check that cannot start does not delay others', async (t) => {
  const { failures, thread } = checkThread();
  let begun = 0;
  thread.schedule(() => {
    throw new Error('it cannot');
  });
  thread.schedule(() => begun++);
  await nextTurn();
  t.equal(begun, 1);
  t.match(failures, [/it cannot/]);
});

t.test('finished checks are released although more and more become due', async (t) => {
  const { thread } = checkThread();
  let begun = 0;
  const again = () => () => {
    begun++;
    thread.schedule(again());
  };
  const firstOne = () => {
    const first = again();
    thread.schedule(first);
    return new WeakRef(first);
  };
  const first = firstOne();
  for (let check = 0; check < 1000; check++) thread.schedule(again());
  while (begun < 2000) await nextTurn();
  collectGarbage();
  t.equal(first.deref(), undefined);
  thread.close();
});
