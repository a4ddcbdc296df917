import t from 'tap';
import { SharedRun } from '../../../src/common/time/shared-run.js';

t.test('all who ask while one run is under way share the next', async (t) => {
  const ends: (() => void)[] = [];
  const shared = new SharedRun(() => new Promise((resolve) => ends.push(resolve)));
  const first = shared.run();
  const later = Array.from({ length: 100 }, () => shared.run());
  t.equal(ends.length, 1);
  ends[0]!();
  await first;
  t.ok(shared.isRunning);
  t.equal(ends.length, 2, 'a run that began after they asked');
  ends[1]!();
  await Promise.all(later);
  t.notOk(shared.isRunning);
  t.equal(ends.length, 2);
});

t.test('a run that fails fails for those that share it, and the next one runs', async (t) => {
  let runs = 0;
  const shared = new SharedRun(async () => {
    if (++runs === 1) throw new Error('no memory');
  });
  const first = shared.run();
  const second = shared.run();
  await t.rejects(first, { message: 'no memory' });
  await second;
  t.equal(runs, 2);
});
