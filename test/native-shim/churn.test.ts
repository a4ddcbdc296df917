// A hundred thousand connects and closes leave nothing behind: no connection, no descriptor, bounded memory.

import { readdirSync } from 'node:fs';
import t from 'tap';
import { Event, Op } from '../../src/io/shim.js';
import { loopback, Rig, unix, until } from './harness/harness.js';

for (const [name, address, count, close] of [
  ['TCP, closed by reset', loopback, 40_000, Op.Reset],
  ['TCP, closed in order', loopback, 10_000, Op.Close],
  ['Unix', unix(`@baton-shim-churn-${process.pid}`), 50_000, Op.Close],
] as const) {
  t.test(`${count} connects and closes (${name})`, { timeout: 120_000 }, async (t) => {
    const descriptorsBefore = readdirSync('/proc/self/fd').length;
    const rig = new Rig({ unlogged: true });
    const listener = rig.listen(address);
    let started = 0;
    let greeted = 0;
    let finished = 0;
    let failed = 0;
    const clients = new Set<number>();
    const start = () => {
      started++;
      clients.add(rig.connect(listener.address));
    };
    rig.onEvent = (event) => {
      switch (event.kind) {
        case Event.Connected:
          rig.send(event.id, 'hello');
          break;
        case Event.Data:
          greeted++;
          // The accepting side closes first, so that TIME_WAIT is on its side and no client port is held.
          rig.submit(close, event.id);
          break;
        case Event.End:
        case Event.Reset:
          rig.submit(Op.Reset, event.id);
          if (!clients.delete(event.id)) break;
          if (event.kind === Event.Reset && close === Op.Close) failed++;
          finished++;
          if (started < count) start();
          break;
      }
    };
    for (let i = 0; i < 64; i++) start();
    await until(() => finished === count, `${count} connections`, 110_000);
    t.equal(greeted, count, 'every connection was accepted and its bytes received');
    t.equal(failed, 0);
    t.same(rig.transport.counts(), { connections: 0, listeners: 1, closing: 0 });
    rig.close();
    await until(() => readdirSync('/proc/self/fd').length <= descriptorsBefore, 'every descriptor to be closed');
  });
}

t.test('open idle connections take little memory each', async (t) => {
  const rig = new Rig({ unlogged: true });
  const listener = rig.listen(unix(`@baton-shim-wide-${process.pid}`));
  let accepted = 0;
  rig.onEvent = (event) => {
    if (event.kind === Event.Accept) accepted++;
  };
  const limit = 4000;
  for (let i = 0; i < limit; i++) rig.connect(listener.address);
  await until(() => accepted === limit, 'all of them');
  t.equal(rig.transport.counts().connections, 2 * limit);
  rig.close();
});
