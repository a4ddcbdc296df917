import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { monotonicMs, TimerDriver } from '../../../src/io/time/timer-driver.js';
import { Timer } from '../../../src/io/time/timing-wheel.js';

t.test('timers fire on the event loop, never early, in the order of their deadlines', async (t) => {
  const driver = new TimerDriver((error) => t.fail(String(error)));
  t.teardown(() => driver.close());
  const fired: number[] = [];
  const timers = [60, 5, 30, 0, 300].map((delayMs) => {
    const begun = monotonicMs();
    return new Promise<number>((resolve) => {
      const timer = new Timer(undefined, () => {
        fired.push(timer.deadline);
        t.ok(monotonicMs() - begun >= delayMs, `${delayMs} ms: after ${monotonicMs() - begun}`);
        resolve(timer.deadline);
      });
      driver.reschedule(timer, delayMs);
    });
  });
  const deadlines = await Promise.all(timers);
  t.same(
    fired,
    deadlines.sort((one, other) => one - other),
  );
});

t.test('I/O that arrived while the thread was blocked is handled before timers', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect(server.address() as { port: number });
  const [peer] = (await once(server, 'connection')) as [Socket];
  const driver = new TimerDriver((error) => t.fail(String(error)));
  t.teardown(() => {
    driver.close();
    client.destroy();
    server.close();
  });
  const order: string[] = [];
  client.on('data', () => order.push('data'));
  await new Promise<void>((resolve) => {
    const timer = new Timer(undefined, () => {
      order.push('timer');
      resolve();
    });
    driver.reschedule(timer, 5);
    peer.write('x');
    blockThread(50);
  });
  t.same(order, ['data', 'timer']);
});

t.test('a thread that was blocked serves several turns before timers', async (t) => {
  const driver = new TimerDriver((error) => t.fail(String(error)));
  t.teardown(() => driver.close());
  const order: string[] = [];
  const turn = (): void => {
    driver.wheel.setTime(monotonicMs());
    if (order.push('turn') < 3) setImmediate(turn);
  };
  await new Promise<void>((resolve) => {
    const timer = new Timer(undefined, () => {
      order.push('timer');
      resolve();
    });
    driver.reschedule(timer, 5);
    setImmediate(turn);
    blockThread(500);
  });
  t.same(order, ['turn', 'turn', 'turn', 'timer']);
});

t.test('a timer scheduled by a callback fires, and an exception in one stops no other', async (t) => {
  const errors: unknown[] = [];
  const driver = new TimerDriver((error) => errors.push(error));
  t.teardown(() => driver.close());
  await new Promise<void>((resolve) => {
    const second = new Timer(undefined, () => resolve());
    const first = new Timer(undefined, () => {
      driver.wheel.schedule(second, 3);
      throw new Error('after scheduling');
    });
    driver.reschedule(first, 2);
  });
  t.equal(errors.length, 1);
});

t.test('after close() nothing fires and the thread can exit', async (t) => {
  const url = new URL('../../../src/io/time/', import.meta.url).href;
  const worker = new Worker(
    `import(${JSON.stringify(`${url}timer-driver.js`)}).then(async ({ TimerDriver }) => {
       const { Timer } = await import(${JSON.stringify(`${url}timing-wheel.js`)});
       const driver = new TimerDriver(() => {});
       driver.reschedule(new Timer(0, () => { throw new Error('fired') }), 3600_000);
       driver.close();
       driver.reschedule(new Timer(0, () => { throw new Error('fired') }), 1);
     })`,
    { eval: true },
  );
  const [code] = await once(worker, 'exit');
  t.equal(code, 0);
});

t.test('clocks of different threads agree', async (t) => {
  const url = new URL('../../../src/io/time/timer-driver.js', import.meta.url).href;
  const before = monotonicMs();
  const worker = new Worker(
    `import(${JSON.stringify(url)}).then(({ monotonicMs }) =>
       require('node:worker_threads').parentPort.postMessage(monotonicMs()))`,
    { eval: true },
  );
  const [there] = (await once(worker, 'message')) as [number];
  t.ok(before <= there && there <= monotonicMs());
});

function blockThread(forMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, forMs);
}
