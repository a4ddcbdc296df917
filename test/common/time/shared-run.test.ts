import t from 'tap';
import { SharedRun } from '../../../src/common/time/shared-run.js';

t.test('callers during a run share the next one', async (t) => {
  const ends: (() => void)[] = [];
  const shared = new SharedRun(() => new Promise((resolve) => ends.push(resolve)));
  const first = shared.run();
  const later = Array.from({ length: 100 }, () => shared.run());
  t.equal(ends.length, 1);
  ends[0]!();
  await first;
  t.ok(shared.isRunning);
  t.equal(ends.length, 2, 'a run that began after the calls');
  ends[1]!();
  await Promise.all(later);
  t.notOk(shared.isRunning);
  t.equal(ends.length, 2);
});

t.test('a failed run rejects for the callers that share it, and the next one runs', async (t) => {
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
