// Which filters calculate the limit that they share.

import t from 'tap';
import { Random } from '../../../../../src/common/random.js';
import { ConcurrencyLimit } from '../../../../../src/extensions/filters/http/adaptive-concurrency/concurrency-limit.js';
import { gradientMemory } from '../../../../../src/extensions/filters/http/adaptive-concurrency/gradient.js';
import { GradientSettings } from '../../../../../src/extensions/filters/http/adaptive-concurrency/settings.js';
import { TimingWheel } from '../../../../../src/io/time/timing-wheel.js';
import { Runtime } from '../../../../../src/runtime/runtime.js';

t.test('filters with one limit calculate it once in an interval, also when the first of them is gone', async (t) => {
  const config = {
    concurrency_limit_params: { concurrency_update_interval: '1s', max_concurrency_limit: 1_000_000 },
    min_rtt_calc_params: { fixed_value: '1s', min_concurrency: 4 },
  };
  const settings = new GradientSettings(config as never, new Runtime());
  const timers = new TimingWheel({ nowMs: 0, onError: (error) => t.fail(String(error)) });
  const state = [['key', gradientMemory(settings)]];
  const port = { worker: 0, state, onState: undefined };
  const context = { clock: { monotonicMs: 0 }, random: new Random(), timers, port: () => port };
  const stats = { increment() {}, decrement() {}, set() {}, total: () => 0 };
  const create = () => new ConcurrencyLimit(context as never, 'key', settings, stats as never);
  /** The time that has passed, in steps of half an interval with a request in each. */
  let nowMs = 0;
  const pass = (limit: ConcurrencyLimit, halves: number) => {
    for (let half = 0; half < halves; half++) {
      limit.end(nowMs);
      nowMs += 510;
      timers.advance(nowMs);
    }
    return limit.gradient!.limit;
  };
  const first = create();
  nowMs = 500;
  timers.advance(nowMs);
  const second = create();
  t.equal(pass(second, 2), 10, '4 times 2, and its root, once');
  first.close();
  t.ok(pass(second, 3) > 10, 'the other one goes on');
  second.close();
  const limit = second.gradient!.limit;
  t.equal(pass(second, 4), limit, 'nobody is left');
});
