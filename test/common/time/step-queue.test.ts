// Long work in steps: one task after the other, with turns of the event loop between the steps.

import t from 'tap';
import { nextTurn } from '../../../src/common/time/next-turn.js';
import { StepQueue } from '../../../src/common/time/step-queue.js';

function* work(log: string[], name: string, steps: number): Generator<void, string> {
  for (let step = 1; step < steps; step++) {
    log.push(`${name}${step}`);
    yield;
  }
  log.push(`${name}${steps}`);
  return name;
}

t.test('short work completes immediately, and work added during a long task waits for it', async (t) => {
  const queue = new StepQueue();
  const log: string[] = [];
  const short = queue.run(work(log, 'a', 1));
  t.same(log, ['a1']);
  t.equal(await short, 'a');
  await nextTurn();
  t.equal(queue.isBusy, false);

  const long = queue.run(work(log, 'b', 3));
  const behind = queue.run(work(log, 'c', 2));
  t.same(log, ['a1', 'b1']);
  t.equal(queue.isBusy, true);
  await nextTurn();
  log.push('turn');
  t.same(await Promise.all([long, behind]), ['b', 'c']);
  t.same(
    log.filter((each) => each !== 'turn'),
    ['a1', 'b1', 'b2', 'b3', 'c1', 'c2'],
  );
  t.ok(log.indexOf('turn') < log.indexOf('b3'), 'other work has turns');
});

t.test('failed work does not block the work after it', async (t) => {
  const queue = new StepQueue();
  const log: string[] = [];
  const failed = queue.run(
    (function* (): Generator<void, void> {
      yield;
      throw new Error('wrong');
    })(),
  );
  const behind = queue.run(work(log, 'a', 1));
  await t.rejects(failed, /wrong/);
  t.equal(await behind, 'a');
});

t.test('a closed queue takes no further step', async (t) => {
  const queue = new StepQueue();
  const log: string[] = [];
  const long = queue.run(work(log, 'a', 3));
  queue.close();
  t.equal(await long, undefined);
  t.same(log, ['a1']);
  await nextTurn();
  t.equal(queue.isBusy, false);
});
