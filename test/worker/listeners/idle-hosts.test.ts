// When idle connections to hosts are closed.

import t, { type Test } from 'tap';
import { TimingWheel } from '../../../src/io/time/timing-wheel.js';
import { IdleHosts } from '../../../src/worker/listeners/idle-hosts.js';

function setUp(t: Test) {
  const wheel = new TimingWheel({ nowMs: 0, onError: (error) => t.error(error) });
  const transport = { isStarved: true };
  const closed: { atMs: number; idleMs: number }[] = [];
  const clusters = { closeIdle: (idleMs: number) => void closed.push({ atMs: wheel.nowMs, idleMs }) };
  const idleHosts = new IdleHosts({ wheel, transport, clusters } as never);
  const timesMs = () => closed.map(({ atMs }) => atMs);
  return { wheel, transport, closed, idleHosts, timesMs };
}

t.test('at once, and once a second as long as clients wait', (t) => {
  const { wheel, transport, closed, idleHosts, timesMs } = setUp(t);
  idleHosts.makeRoom();
  t.same(closed, [{ atMs: 0, idleMs: 1000 }]);
  for (let nowMs = 10; nowMs <= 2500; nowMs += 10) wheel.advance(nowMs);
  t.same(timesMs(), [0, 1000, 2000]);
  transport.isStarved = false;
  for (let nowMs = 2510; nowMs <= 9000; nowMs += 10) wheel.advance(nowMs);
  t.same(timesMs(), [0, 1000, 2000], 'no client waits any more');
  idleHosts.makeRoom();
  t.equal(closed.length, 4, 'at once again');
  t.end();
});

t.test('not more often when accepting pauses repeatedly', (t) => {
  const { wheel, transport, idleHosts, timesMs } = setUp(t);
  for (let nowMs = 0; nowMs <= 2500; nowMs += 10) {
    transport.isStarved = nowMs % 20 === 0;
    wheel.advance(nowMs);
    idleHosts.makeRoom();
  }
  t.same(timesMs(), [0, 1000, 2000]);
  t.end();
});
