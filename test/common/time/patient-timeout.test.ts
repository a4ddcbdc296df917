// PatientTimeout: it never fires early, and lets data that has already arrived be handled first.

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { PatientTimeout } from '../../../src/common/time/patient-timeout.js';

t.test('data that arrived while the process was stopped is handled before the timeout', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect(server.address() as { port: number });
  const [peer] = (await once(server, 'connection')) as [Socket];
  t.teardown(() => {
    client.destroy();
    server.close();
  });
  const order: string[] = [];
  client.on('data', () => setImmediate(() => order.push('data')));
  await new Promise<void>((resolve) => {
    new PatientTimeout(() => {
      order.push('end');
      resolve();
    }, 5);
    peer.write('x');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
  });
  t.same(order, ['data', 'end']);
});

t.test('a timeout does not fire early, nor after clear()', async (t) => {
  const beganMs = performance.now();
  await new Promise<void>((resolve) => {
    const cleared = new PatientTimeout(() => t.fail('cleared'), 10);
    setTimeout(() => cleared.clear(), 10);
    new PatientTimeout(() => t.fail('cleared at once'), 10).clear();
    // Longer than Node's longest timer, which would fire at once.
    const long = new PatientTimeout(() => t.fail('not over'), 2 ** 32);
    new PatientTimeout(() => {
      long.clear();
      resolve();
    }, 30);
  });
  t.ok(performance.now() - beganMs >= 30);
});

t.test('a Node timer that fires early causes neither an early timeout nor a warning', async (t) => {
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on('warning', warned);
  t.teardown(() => process.off('warning', warned));
  // Timers count whole milliseconds: a loop that never sleeps sees a timer as due before its last millisecond is over.
  let turn: NodeJS.Immediate;
  const keepTurning = () => {
    turn = setImmediate(keepTurning);
  };
  keepTurning();
  t.teardown(() => clearImmediate(turn));
  const early: number[] = [];
  for (let count = 0; count < 50; count++) {
    const dueMs = performance.now() + 3;
    await new Promise<void>((resolve) => new PatientTimeout(resolve, 3));
    const leftMs = dueMs - performance.now();
    if (leftMs > 0) early.push(leftMs);
  }
  t.same(early, []);
  t.same(warnings, []);
});
