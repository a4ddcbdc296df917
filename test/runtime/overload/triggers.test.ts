import t from 'tap';
import { scaled } from '../../../src/runtime/overload/scaled-timeouts.js';
import { triggerState } from '../../../src/runtime/overload/triggers.js';

t.test('a threshold trigger is active from its threshold on', async (t) => {
  const trigger = { name: 'r', threshold: { value: 0.9 } };
  t.strictSame(
    [0, 0.89, 0.9, 1].map((pressure) => triggerState(trigger, pressure)),
    [0, 0, 1, 1],
  );
});

t.test('a scaled trigger grows between its thresholds', async (t) => {
  const trigger = { name: 'r', scaled: { scaling_threshold: 0.5, saturation_threshold: 0.75 } };
  t.strictSame(
    [0, 0.5, 0.625, 0.75, 3].map((pressure) => triggerState(trigger, pressure)),
    [0, 0, 0.5, 1, 1],
  );
});

t.test('a timeout shrinks from its configured value to its minimum', async (t) => {
  t.equal(scaled(1000, { ms: 200 }, 0), 1000);
  t.equal(scaled(1000, { ms: 200 }, 0.5), 600);
  t.equal(scaled(1000, { scale: 0.1 }, 1), 100);
  t.equal(scaled(1000, { ms: 5000 }, 1), 1000, 'a minimum above it changes nothing');
  t.equal(scaled(0, { ms: 200 }, 1), 0, 'without a timeout there is none under overload');
  t.equal(scaled(1000, undefined, 1), 1000);
  t.equal(scaled(1000, { ms: 0 }, 1), 1, 'it never becomes none');
});
