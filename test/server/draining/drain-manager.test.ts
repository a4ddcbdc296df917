// Drains on the primary: what is sent to workers and when, without a server.

import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import type { Timer } from '../../../src/io/time/timing-wheel.js';
import { type DrainableListener, DrainManager, type DrainOptions } from '../../../src/server/draining/drain-manager.js';

const GRACEFUL: DrainOptions = {
  reach: 'all',
  reason: 'admin',
  timeMs: 10_000,
  strategy: 'gradual',
  stopsAccepting: 'at-end',
};

/** A manager with a manual clock, and the journal of its actions. */
function setUp() {
  const journal: string[] = [];
  let now = 1000;
  const timers = new Map<Timer, number>();
  const listeners = [
    { id: 1, name: 'in', config: { traffic_direction: 'INBOUND' as const }, isStopped: false },
    { id: 2, name: 'out', config: {}, isStopped: false },
  ];
  const nameOf = (id: number) => listeners.find((each) => each.id === id)?.name;
  const manager = new DrainManager({
    timers: {
      reschedule: (timer, delayMs) => void timers.set(timer, now + delayMs),
      cancel: (timer) => void timers.delete(timer),
    },
    now: () => now,
    listeners: () => listeners as DrainableListener[],
    broadcast: (message) => {
      if (message.kind === 'drain') {
        const windows = [...message.windows].map(([id, { startMs, timeMs }]) => `${nameOf(id)} ${startMs}+${timeMs}`);
        journal.push(`drain ${windows.join(', ')}`);
        structuredClone(message);
      } else if (message.kind === 'drain-ended') journal.push(`ended ${message.ids.map(nameOf).join(', ')}`);
    },
    stopListeners: async (reach, { acceptRest }) => {
      journal.push(`stop ${reach}${acceptRest ? ', accepting the rest' : ''}`);
      for (const each of listeners) each.isStopped ||= reach === 'all' || each.name === 'in';
    },
    changed: () => undefined,
  });
  const pass = async (ms: number) => {
    now += ms;
    for (const [timer, at] of [...timers]) {
      if (at > now) continue;
      timers.delete(timer);
      timer.onTimer(timer.owner);
    }
    await nextTurn();
  };
  const draining = () => listeners.filter((each) => manager.isDraining(each)).map(({ name }) => name);
  return { manager, pass, draining, listeners, taken: () => journal.splice(0) };
}

t.test('listeners accept until the time is over, and stop before remaining connections are closed', async (t) => {
  const { manager, pass, draining, taken } = setUp();
  const drain = manager.start(GRACEFUL);
  t.same(taken(), ['drain in 1000+10000, out 1000+10000']);
  await pass(9999);
  t.same(taken(), []);
  t.same(draining(), ['in', 'out']);
  await pass(1);
  t.same(taken(), ['stop all, accepting the rest', 'ended in, out']);
  await drain.done;
  t.same(draining(), []);
});

t.test('replaced listeners drain for a time of their own', async (t) => {
  const { manager, pass, taken } = setUp();
  let over = 0;
  const first = manager.drainReplaced(1, { timeMs: 5000, strategy: 'immediate' }, () => over++);
  const second = manager.drainReplaced(2, { timeMs: 5000, strategy: 'gradual' }, () => over++);
  t.same(taken(), ['drain in 1000+5000', 'drain out 1000+5000']);
  t.match(first.window, { startMs: 1000, timeMs: 5000, strategy: 'immediate' });
  second.cancel();
  await pass(5000);
  t.equal(over, 1);
  t.equal(manager.latest, undefined, 'it is not a drain of all listeners');
  t.same(taken(), []);
});

t.test('a drain that changes nothing joins the earlier one', async (t) => {
  const { manager, pass, taken } = setUp();
  const drain = manager.start(GRACEFUL);
  taken();
  await pass(2000);
  t.equal(manager.start(GRACEFUL), drain);
  t.equal(manager.start({ ...GRACEFUL, reach: 'inbound' }), drain, 'nor does one with a smaller reach');
  t.same(taken(), []);
  await pass(8000);
  taken();
  t.equal(manager.start(GRACEFUL), drain, 'nor does a later one');
  t.same(taken(), []);
});

t.test('a drain that differs in any option starts beside the earlier one', async (t) => {
  const others: Partial<DrainOptions>[] = [
    { strategy: 'immediate' },
    { timeMs: 5000 },
    { reason: 'sigterm' },
    { stopsAccepting: 'never' },
  ];
  for (const other of others) {
    const { manager, taken } = setUp();
    const drain = manager.start(GRACEFUL);
    taken();
    t.not(manager.start({ ...GRACEFUL, ...other }), drain, JSON.stringify(other));
    t.match(taken(), [/^drain in /]);
  }
});

t.test('a wider drain starts for the other listeners, and shortens no drain time', async (t) => {
  const { manager, pass, taken, draining } = setUp();
  manager.start({ ...GRACEFUL, reach: 'inbound' });
  t.same(taken(), ['drain in 1000+10000']);
  t.same(draining(), ['in']);
  await pass(4000);
  manager.start(GRACEFUL);
  t.same(taken(), ['drain in 1000+10000, out 5000+10000']);
  await pass(6000);
  t.same(taken(), ['stop inbound, accepting the rest', 'ended in']);
  await pass(4000);
  t.same(taken(), ['stop all, accepting the rest', 'ended in, out']);
});

t.test("with 'never' nothing stops, and connections are asked to close for good", async (t) => {
  const { manager, pass, taken, draining } = setUp();
  manager.start({ ...GRACEFUL, stopsAccepting: 'never' });
  taken();
  await pass(20_000);
  t.same(taken(), ['ended in, out']);
  t.same(draining(), ['in', 'out']);
  manager.start(GRACEFUL);
  await pass(10_000);
  t.same(taken().slice(1), ['stop all, accepting the rest', 'ended in, out'], 'a later drain may stop them');
});

t.test("with 'now' listeners stop at once", async (t) => {
  const { manager, pass, taken, draining } = setUp();
  const drain = manager.start({ ...GRACEFUL, reason: 'restart', stopsAccepting: 'now' });
  t.same(taken(), ['drain in 1000+10000, out 1000+10000', 'stop all']);
  t.same(draining(), ['in', 'out']);
  await pass(10_000);
  t.same(taken(), ['ended in, out']);
  await drain.done;
});

t.test('the end of the server ends each drain', async (t) => {
  const { manager, pass, taken } = setUp();
  const drain = manager.start(GRACEFUL);
  taken();
  manager.close();
  await drain.done;
  await pass(20_000);
  t.same(taken(), []);
});
