import fc from 'fast-check';
import t from 'tap';
import { priorityLoads } from '../../../src/upstream/load-balancer/priority-load.js';

/** [total, healthy, degraded, excluded] of each priority. */
const loads = (levels: number[][], panicThreshold = 50) =>
  priorityLoads(
    levels.map(([total, healthy, degraded = 0, excluded = 0]) => ({
      total: total!,
      healthy: healthy!,
      degraded,
      excluded,
    })),
    140,
    panicThreshold,
  );

t.test("priorities share the load as in Envoy's documentation", async (t) => {
  // "Priority levels": percent of healthy hosts in P=0 and P=1, and the load that each gets.
  for (const [p0, p1, load0, load1] of [
    [100, 100, 100, 0],
    [72, 100, 100, 0],
    [71, 100, 99, 1],
    [50, 100, 70, 30],
    [25, 100, 35, 65],
    [0, 100, 0, 100],
    [25, 25, 50, 50],
  ] as const) {
    t.same(
      loads([
        [100, p0],
        [100, p1],
      ]).healthy,
      [load0, load1],
      `${p0} % and ${p1} %`,
    );
  }
  t.same(
    loads(
      [
        [100, 20],
        [100, 20],
        [100, 20],
      ],
      0,
    ).healthy,
    [34, 33, 33],
    'rounding goes to the first',
  );
});

t.test('panic applies with too few healthy hosts overall and a priority below the threshold', async (t) => {
  t.same(loads([[10, 6]]).panic, [false]);
  t.same(loads([[10, 4]]).panic, [true]);
  t.same(loads([[10, 1, 4]]).panic, [false], 'degraded ones are not unhealthy ones');
  t.same(loads([[10, 0]], 0), { healthy: [100], degraded: [0], panic: [false] });
  t.same(
    loads([
      [100, 5],
      [100, 65],
    ]).panic,
    [true, false],
  );
  t.same(
    loads([
      [100, 5],
      [100, 100],
    ]).panic,
    [false, false],
    'others bear the load',
  );
  t.same(
    loads([
      [30, 0],
      [10, 0],
    ]),
    { healthy: [75, 25], degraded: [0, 0], panic: [true, true] },
  );
});

t.test('degraded hosts get the load that healthy hosts of all priorities cannot carry', async (t) => {
  const { healthy, degraded } = loads([
    [100, 50, 50],
    [100, 10],
  ]);
  t.same(
    [healthy, degraded],
    [
      [70, 14],
      [16, 0],
    ],
  );
});

t.test('excluded hosts do not lower the health', async (t) => {
  t.same(
    loads([
      [10, 3, 0, 7],
      [10, 10],
    ]).healthy,
    [100, 0],
  );
});

t.test('the loads of all priorities add up to 100 for any health', async () => {
  const level = fc
    .tuple(fc.nat(20), fc.nat(20), fc.nat(20), fc.nat(20))
    .map(([healthy, degraded, failed, excluded]) => [
      healthy + degraded + failed + excluded,
      healthy,
      degraded,
      excluded,
    ]);
  fc.assert(
    fc.property(fc.array(level, { minLength: 1, maxLength: 5 }), fc.constantFrom(0, 50, 100), (levels, threshold) => {
      const { healthy, degraded } = loads(levels, threshold);
      return [...healthy, ...degraded].reduce((a, b) => a + b, 0) === 100;
    }),
    { numRuns: 2000 },
  );
});
