// The time until the next health check.

import t from 'tap';
import { Random } from '../../../src/common/random.js';
import {
  type CheckIntervals,
  firstCheckMs,
  type LastCheck,
  nextCheckMs,
} from '../../../src/upstream/health-checks/check-interval.js';

const INTERVALS: CheckIntervals = {
  interval: 1000,
  noTraffic: 60_000,
  noTrafficHealthy: 90_000,
  unhealthy: 2000,
  unhealthyEdge: 300,
  healthyEdge: 400,
  initialJitter: 0,
  jitter: 0,
  jitterPercent: 0,
};
const UNBOUND = { minMs: 0, maxMs: Number.POSITIVE_INFINITY };

function next(
  last: Partial<LastCheck>,
  changes: Partial<CheckIntervals> = {},
  bounds = UNBOUND,
  random = new Random(1),
) {
  const check = { hasPassed: true, hasTraffic: true, isAtEdge: false, ...last };
  return nextCheckMs({ ...INTERVALS, ...changes }, check, bounds, random);
}

t.test('the interval depends on the last check and on pending health changes', async (t) => {
  t.equal(next({}), 1000);
  t.equal(next({ isAtEdge: true }), 400);
  t.equal(next({ hasPassed: false }), 2000);
  t.equal(next({ hasPassed: false, isAtEdge: true }), 300);
});

t.test('without traffic the no-traffic intervals apply', async (t) => {
  const last = { hasTraffic: false };
  t.equal(next(last), 90_000);
  t.equal(next({ ...last, isAtEdge: true }), 60_000);
  t.equal(next({ ...last, hasPassed: false }), 60_000);
});

t.test('jitter up to the configured maximum is added', async (t) => {
  const random = new Random(7);
  const seen = Array.from({ length: 1000 }, () => next({}, { jitter: 100, jitterPercent: 20 }, UNBOUND, random));
  t.ok(Math.min(...seen) >= 1000 && Math.max(...seen) < 1300);
  t.ok(Math.max(...seen) > 1200, 'both jitters are added');
});

t.test('only the initial jitter delays the first check', async (t) => {
  const random = new Random(7);
  t.equal(firstCheckMs(INTERVALS, UNBOUND, random), 0);
  const intervals = { ...INTERVALS, initialJitter: 500, jitter: 10_000 };
  const seen = Array.from({ length: 1000 }, () => firstCheckMs(intervals, UNBOUND, random));
  t.ok(Math.min(...seen) >= 1 && Math.max(...seen) < 500 && Math.max(...seen) > 400);
});

t.test('bounds apply to every interval, and the lower one takes precedence', async (t) => {
  t.equal(next({}, {}, { minMs: 5000, maxMs: 10_000 }), 5000);
  t.equal(next({ hasTraffic: false }, {}, { minMs: 0, maxMs: 10_000 }), 10_000);
  t.equal(next({}, {}, { minMs: 7000, maxMs: 0 }), 7000);
  t.equal(next({}, { interval: 0.1 }), 1, 'never at once');
});
