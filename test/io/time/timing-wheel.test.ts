import fc from 'fast-check';
import t from 'tap';
import { Deadline } from '../../../src/io/time/deadline.js';
import { Timer, TimingWheel } from '../../../src/io/time/timing-wheel.js';

/** Returns a wheel whose timers record their number when they fire. */
function recordingWheel(nowMs = 0) {
  const fired: number[] = [];
  const errors: unknown[] = [];
  const asked: number[] = [];
  const wheel = new TimingWheel({
    nowMs,
    onError: (error) => errors.push(error),
    onEarlier: (atMs) => asked.push(atMs),
  });
  const timer = (id: number) => new Timer(id, (owner) => fired.push(owner));
  return { wheel, fired, errors, asked, timer };
}

t.test('a timer fires once, at the first advance at or after its delay', async (t) => {
  for (const delay of [
    0,
    1,
    255,
    256,
    257,
    65_535,
    65_536,
    70_000,
    2 ** 24 - 1,
    2 ** 24,
    2 ** 24 + 5,
    2 ** 32,
    2 ** 40,
  ]) {
    const { wheel, fired, timer } = recordingWheel(1000.25);
    wheel.schedule(timer(1), delay);
    wheel.advance(1000.25 + delay - 0.5);
    t.same(fired, [], `not before ${delay} ms`);
    wheel.advance(1000.25 + delay + 1);
    t.same(fired, [1], `within a millisecond after ${delay} ms`);
    wheel.advance(1000.25 + 3 * delay + 10);
    t.same(fired, [1], `once for ${delay} ms`);
    t.equal(wheel.nextWakeMs(), Number.POSITIVE_INFINITY);
  }
});

t.test('timers behave like a sorted list, for random schedules, cancellations and time jumps', async () => {
  const delay = fc.oneof(
    fc.nat(3),
    fc.nat(600),
    fc.nat(200_000),
    fc.nat(2 ** 25),
    fc.double({ min: 0, max: 1000, noNaN: true }),
  );
  const command = fc.oneof(
    fc.record({ kind: fc.constant('schedule' as const), id: fc.nat(19), delay }),
    fc.record({ kind: fc.constant('cancel' as const), id: fc.nat(19), delay: fc.constant(0) }),
    fc.record({ kind: fc.constant('advance' as const), id: fc.constant(0), delay }),
    fc.record({ kind: fc.constant('setTime' as const), id: fc.constant(0), delay: fc.nat(20) }),
    fc.record({ kind: fc.constant('jumpToWake' as const), id: fc.constant(0), delay: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(command, { maxLength: 120 }), (commands) => {
      const { wheel, fired, timer } = recordingWheel();
      const timers = Array.from({ length: 20 }, (_, id) => timer(id));
      const model = new Map<number, { deadline: number; order: number }>();
      let now = 0;
      let tick = 0;
      let order = 0;
      for (const { kind, id, delay } of commands) {
        if (kind === 'schedule') {
          wheel.reschedule(timers[id]!, delay);
          model.set(id, { deadline: Math.max(Math.ceil(now + delay), tick + 1), order: order++ });
        } else if (kind === 'cancel') {
          wheel.cancel(timers[id]!);
          model.delete(id);
        } else if (kind === 'setTime') {
          wheel.setTime((now += delay));
        } else {
          const wake = wheel.nextWakeMs();
          const first = Math.min(...[...model.values()].map((entry) => entry.deadline));
          if (wake > first) throw new Error(`would wake at ${wake} for a timer at ${first}`);
          now = kind === 'advance' ? now + delay : Math.max(now, Number.isFinite(wake) ? wake : now);
          fired.length = 0;
          wheel.advance(now);
          tick = Math.max(tick, Math.floor(now));
          const due = [...model].filter(([, entry]) => entry.deadline <= now);
          due.sort(([, a], [, b]) => a.deadline - b.deadline || a.order - b.order);
          for (const [id] of due) model.delete(id);
          const expected = due.map(([id]) => id).join();
          if (fired.join() !== expected) throw new Error(`fired ${fired.join()}, expected ${expected} at ${now}`);
        }
        for (const [id, item] of timers.entries())
          if (item.isScheduled !== model.has(id)) throw new Error(`timer ${id} scheduled: ${item.isScheduled}`);
      }
    }),
    { numRuns: 500 },
  );
});

t.test('a callback may cancel, reschedule and schedule timers, its own included', async (t) => {
  const { wheel, fired, errors, timer } = recordingWheel();
  const victim = timer(2);
  const late = timer(3);
  const periodic: Timer<string> = new Timer('every 10 ms', () => {
    fired.push(1);
    wheel.cancel(victim);
    wheel.reschedule(late, 5);
    wheel.schedule(periodic, 10);
  });
  wheel.schedule(periodic, 10);
  wheel.schedule(victim, 10);
  wheel.schedule(late, 10);
  wheel.advance(10);
  t.same(fired, [1], 'cancelled and postponed timers of the same millisecond do not fire');
  wheel.advance(15);
  t.same(fired, [1, 3]);
  wheel.advance(20);
  t.same(fired, [1, 3, 1]);
  t.same(errors, []);
});

t.test('hasten() moves a timer earlier, and never later', async (t) => {
  const { wheel, fired, timer } = recordingWheel();
  const one = timer(1);
  wheel.hasten(one, 50);
  wheel.hasten(one, 10);
  wheel.hasten(one, 30);
  wheel.advance(9);
  t.same(fired, []);
  wheel.advance(10);
  t.same(fired, [1]);
  wheel.advance(60);
  t.same(fired, [1], 'once');
});

t.test('timers with delay 0 that schedule each other do not keep advance() from returning', async (t) => {
  const { wheel } = recordingWheel();
  let runs = 0;
  const again: Timer<undefined> = new Timer(undefined, () => {
    runs++;
    wheel.schedule(again, 0);
  });
  wheel.schedule(again, 0);
  wheel.advance(50);
  t.ok(runs <= 2);
  wheel.advance(51);
  t.ok(again.isScheduled);
});

t.test('an exception in a callback is reported and the other timers fire', async (t) => {
  const { wheel, fired, errors, timer } = recordingWheel();
  const broken = new Error('broken');
  wheel.schedule(timer(1), 7);
  wheel.schedule(
    new Timer(0, () => {
      throw broken;
    }),
    7,
  );
  wheel.schedule(timer(2), 7);
  wheel.schedule(timer(3), 400);
  wheel.advance(1000);
  t.same(fired, [1, 2, 3]);
  t.same(errors, [broken]);
});

t.test('a wake-up is requested only when a timer is earlier than all others', async (t) => {
  const { wheel, asked, timer } = recordingWheel(500);
  wheel.schedule(timer(1), 15_000);
  for (let i = 0; i < 1000; i++) {
    const timeout = timer(2);
    wheel.setTime(500 + i);
    wheel.schedule(timeout, 15_000);
    wheel.cancel(timeout);
  }
  t.same(asked, [15_500]);
  wheel.schedule(timer(3), 20);
  t.same(asked, [15_500, 500 + 999 + 20]);
});

t.test('cancelled timers cause no wake-up', async (t) => {
  const { wheel, timer } = recordingWheel();
  for (const delay of [5, 500, 100_000, 2 ** 25]) {
    const timeout = timer(1);
    wheel.schedule(timeout, delay);
    wheel.cancel(timeout);
    wheel.cancel(timeout);
  }
  t.equal(wheel.nextWakeMs(), Number.POSITIVE_INFINITY);
});

t.test('a deadline that is reset and cleared is reached when the last one passes, and only then', async (t) => {
  const { wheel } = recordingWheel();
  let reached = 0;
  const deadline = new Deadline(wheel, () => reached++);
  const advance = (toMs: number) => {
    wheel.advance(toMs);
    return reached;
  };
  deadline.set(100);
  wheel.setTime(60);
  deadline.set(100);
  t.equal(advance(159), 0, 'the first has been replaced by a later one');
  t.equal(advance(161), 1);
  t.equal(advance(1000), 1, 'once');
  deadline.set(100);
  deadline.clear();
  t.equal(advance(2000), 1, 'lifted');
  t.equal(wheel.nextWakeMs(), Number.POSITIVE_INFINITY, 'no wake-up is scheduled for it');
  deadline.set(500);
  deadline.set(20);
  t.equal(advance(2021), 2, 'an earlier one counts as well');
  t.equal(advance(3000), 2);
  deadline.set(1000);
  t.equal(advance(3999), 2, 'a long one is waited for in parts');
  t.equal(advance(4001), 3);
  deadline.set(3_600_000);
  deadline.clear();
  advance(4300);
  t.equal(wheel.nextWakeMs(), Number.POSITIVE_INFINITY, 'the owner of a cleared long one is soon released');
});
