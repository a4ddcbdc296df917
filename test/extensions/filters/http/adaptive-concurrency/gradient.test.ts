// The gradient controller, with simulated requests.

import t from 'tap';
import {
  Gradient,
  gradientMemory,
  Word,
} from '../../../../../src/extensions/filters/http/adaptive-concurrency/gradient.js';
import { GradientSettings } from '../../../../../src/extensions/filters/http/adaptive-concurrency/settings.js';
import { Runtime } from '../../../../../src/runtime/runtime.js';

function controllers(limit: object, rtt: object, workers = 1): Gradient[] {
  const config = { concurrency_limit_params: limit, min_rtt_calc_params: rtt };
  const settings = new GradientSettings(config as never, new Runtime());
  const memory = gradientMemory(settings);
  return Array.from({ length: workers }, () => new Gradient(memory, settings));
}

t.test('the last request of a measurement ends it, on any worker', async (t) => {
  const [a, b] = controllers({}, { interval: '60s', request_count: 4, min_concurrency: 1, buffer: { value: 0 } }, 2);
  t.ok(a!.isMeasuring);
  for (const gradient of [a, b, a]) gradient!.record(1000, 1010);
  t.ok(a!.isMeasuring);
  b!.record(1000, 1010);
  t.notOk(a!.isMeasuring);
  const micros = a!.read(Word.MinRtt);
  t.ok(micros >= 10_000 && micros <= 11_000, `${micros} µs`);
});

t.test('requests from before a measurement do not count for it', async (t) => {
  const [gradient] = controllers({}, { interval: '60s', request_count: 1, min_concurrency: 1 });
  gradient!.record(0, 5);
  t.notOk(gradient!.isMeasuring);
  gradient!.measure(1000);
  gradient!.record(999, 1005);
  t.ok(gradient!.isMeasuring);
  gradient!.record(1000, 1005);
  t.notOk(gradient!.isMeasuring);
});

t.test('the limit follows the gradient within its bounds', async (t) => {
  const [gradient] = controllers({ max_concurrency_limit: 30, min_concurrency_limit: 4 }, { fixed_value: '0.010s' });
  t.equal(gradient!.limit, 4);
  gradient!.record(0, 5);
  gradient!.update();
  t.equal(gradient!.limit, 10, '4 times 2, and its root');
  gradient!.record(0, 5);
  gradient!.update();
  t.equal(gradient!.limit, 24);
  gradient!.record(0, 5);
  gradient!.update();
  t.equal(gradient!.limit, 30);
  gradient!.record(0, 100);
  gradient!.update();
  t.equal(gradient!.limit, 18, 'half of it, and its root');
  gradient!.update();
  t.equal(gradient!.limit, 18, 'unchanged without requests');
});

t.test('a limit that stays at its minimum leads to a new measurement', async (t) => {
  const [gradient] = controllers({}, { interval: '60s', request_count: 1, min_concurrency: 3 });
  gradient!.record(0, 1);
  const stuck = Array.from({ length: 6 }, () => {
    gradient!.record(10, 1000);
    return gradient!.update();
  });
  t.same(stuck, [false, false, false, false, true, true]);
});
