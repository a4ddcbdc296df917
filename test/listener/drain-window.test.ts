// The drain window of a listener: which responses end their connections.

import fc from 'fast-check';
import t from 'tap';
import { Random } from '../../src/common/random.js';
import { closesConnection, type DrainWindow, moreUrgent } from '../../src/listener/drain-window.js';
import { ListenerDrain } from '../../src/listener/listener-drain.js';

/** A random source that returns `value`, limited by below(). */
const always = (value: number) => ({ below: (n: number) => Math.min(value, n - 1) });
const LAST = always(Number.POSITIVE_INFINITY);
const FIRST = always(0);

/** Returns the fraction of responses that close, over all equally likely random numbers. */
function share(window: DrainWindow, nowMs: number): number {
  const seconds = Math.max(1, Math.ceil(window.timeMs / 1000));
  let closing = 0;
  for (let value = 0; value < seconds; value++) if (closesConnection(window, nowMs, always(value))) closing++;
  return closing / seconds;
}

t.test(
  'gradual closes the fraction elapsed / drain time of connections, with elapsed rounded up to whole seconds',
  async (t) => {
    const window: DrainWindow = { startMs: 5000, timeMs: 10_000, strategy: 'gradual' };
    const curve: [elapsedMs: number, share: number][] = [
      [0, 0],
      [1, 0.1],
      [1000, 0.1],
      [1001, 0.2],
      [5000, 0.5],
      [8999, 0.9],
      [9001, 1],
      [10_000, 1],
      [1e9, 1],
    ];
    for (const [elapsedMs, expected] of curve) t.equal(share(window, 5000 + elapsedMs), expected, `${elapsedMs} ms`);
  },
);

t.test('with a drain time of 0 or the immediate strategy every response closes', async (t) => {
  t.ok(closesConnection({ startMs: 7, timeMs: 0, strategy: 'gradual' }, 7, LAST));
  t.ok(closesConnection({ startMs: 7, timeMs: 600_000, strategy: 'immediate' }, 7, LAST));
});

t.test('the fraction follows the curve with random numbers, never falls, and is 1 after the drain time', async () => {
  const windows = fc.record({
    startMs: fc.double({ min: 0, max: 1e9, noNaN: true }),
    timeMs: fc.integer({ min: 0, max: 900 }).map((seconds) => seconds * 1000),
    strategy: fc.constant('gradual' as const),
  });
  fc.assert(
    fc.property(windows, fc.double({ min: 0, max: 1.2, noNaN: true }), fc.nat(), (window, at, seed) => {
      const { startMs, timeMs } = window;
      const now = startMs + timeMs * at;
      const draws = 2000;
      const random = new Random(seed);
      let closing = 0;
      for (let draw = 0; draw < draws; draw++) if (closesConnection(window, now, random)) closing++;
      const expected =
        timeMs === 0 ? 1 : Math.min(1, Math.ceil(((now - startMs) / 1000) * (1 - 1e-12)) / (timeMs / 1000));
      const tolerance = 1000 / Math.max(timeMs, 1000) + 5 * Math.sqrt(0.25 / draws);
      if (at >= 1) return closing === draws;
      return Math.abs(closing / draws - expected) <= tolerance && share(window, now) <= share(window, now + 1000);
    }),
    { numRuns: 200 },
  );
});

t.test('of two windows the one that ends first applies', async (t) => {
  const early: DrainWindow = { startMs: 0, timeMs: 10_000, strategy: 'gradual' };
  const late: DrainWindow = { startMs: 4000, timeMs: 10_000, strategy: 'gradual' };
  const now: DrainWindow = { startMs: 5000, timeMs: 90_000, strategy: 'immediate' };
  t.equal(moreUrgent(undefined, late), late);
  t.equal(moreUrgent(early, late), early);
  t.equal(moreUrgent(late, early), early);
  t.equal(moreUrgent(early, now), now);
  t.equal(moreUrgent(now, early), now);
});

t.test('a listener drains in its window, or while /healthcheck/fail is in effect unless it ignores that', async (t) => {
  const health = { isFailRequested: false };
  const drains = [new ListenerDrain(health), new ListenerDrain(undefined)] as const;
  const closing = () => drains.map((drain) => drain.shouldClose(1000, FIRST as Random));
  t.same(closing(), [false, false]);
  health.isFailRequested = true;
  t.same(closing(), [true, false]);
  health.isFailRequested = false;
  for (const drain of drains) drain.window = { startMs: 0, timeMs: 1000, strategy: 'gradual' };
  t.same(closing(), [true, true]);
});
