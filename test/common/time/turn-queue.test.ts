import t from 'tap';
import { inTurns } from '../../../src/common/time/next-turn.js';
import { TurnQueue } from '../../../src/common/time/turn-queue.js';
import { countTurns } from './count-turns.js';

t.test('each turn of the loop has one step, however many tasks wait, and tasks alternate', async (t) => {
  const queue = new TurnQueue();
  const turn = countTurns(t);
  const order: string[] = [];
  const turns: number[] = [];
  function* steps(name: string): Generator<void, string> {
    for (let step = 1; step <= 3; step++) {
      yield;
      order.push(`${name}${step}`);
      turns.push(turn());
    }
    return name;
  }
  const next = () => queue.next();
  t.same(await Promise.all(['a', 'b', 'c'].map((name) => inTurns(steps(name), next))), ['a', 'b', 'c']);
  t.same(order, ['a1', 'b1', 'c1', 'a2', 'b2', 'c2', 'a3', 'b3', 'c3']);
  t.equal(new Set(turns).size, turns.length, 'no turn of the loop had two steps');
});

t.test('steps are postponed for more urgent work, but not forever', async (t) => {
  const queue = new TurnQueue();
  let steps = 0;
  let turns = 0;
  const stepped = queue.next().then(() => steps++);
  // Each turn has more urgent work.
  const postpone = () => {
    if (steps > 0) return;
    turns++;
    queue.postpone();
    setImmediate(postpone);
  };
  postpone();
  await stepped;
  t.ok(turns > 10, `${turns} turns went by`);
  t.ok(turns < 30);
});
