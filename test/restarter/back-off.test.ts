import t from 'tap';
import { BackOff } from '../../src/restarter/back-off.js';

const pauses = (backOff: BackOff, count: number) => Array.from({ length: count }, () => backOff.next());

t.test('the first death has no delay, later ones have growing delays up to half a minute', async (t) => {
  t.same(pauses(new BackOff(), 8), [0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
});

t.test('only a minute of being live resets the back-off', async (t) => {
  const backOff = new BackOff();
  pauses(backOff, 3);
  backOff.died(59_999);
  t.equal(backOff.next(), 4000);
  backOff.died(60_000);
  t.same(pauses(backOff, 2), [0, 1000]);
});
