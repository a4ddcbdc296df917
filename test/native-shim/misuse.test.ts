// Programming errors cause an exception and never touch other memory.

import t from 'tap';
import { Control, Event, Op } from '../../src/io/shim.js';
import { loopback, Rig, shim, until } from './harness/harness.js';

t.test('submissions outside of the arrays are refused, and the others are carried out', async (t) => {
  const rig = new Rig();
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  const end = rig.memory.length;
  for (const [offset, length] of [
    [end, 1],
    [end - 1, 2],
    [-1, 1],
    [0, -1],
    [2 ** 31 - 1, 2 ** 31 - 1],
    [-(2 ** 31), -(2 ** 31)],
  ] as const) {
    const before = rig.received(server).length;
    rig.submit(Op.Send, client, offset, length);
    rig.send(client, 'ok');
    t.throws(() => rig.flush(), { name: 'TypeError', message: /outside of the memory/ });
    rig.flush();
    await until(() => rig.received(server).length === before + 2, 'the good submission');
  }
  rig.submit(99 as Op, client);
  t.throws(() => rig.flush(), { message: /unknown op/ });
  rig.submit(Op.Close, client, -5, 0);
  t.throws(() => rig.flush(), { message: /negative/ });
  for (const count of [rig.maxSubmissions + 1, -1, 2 ** 31 - 1]) {
    rig.control[Control.Submissions] = count;
    t.throws(() => rig.flush(), { message: /capacity/ });
    t.equal(rig.control[Control.Submissions], 0);
  }
  rig.sendNow(client, 'still here');
  await until(() => rig.received(server).toString().endsWith('still here'), 'the last bytes');
  rig.close();
});

t.test('a mistake in a batch reaches uncaughtException', async (t) => {
  const caught: unknown[] = [];
  const listener = (error: unknown) => caught.push(error);
  process.on('uncaughtException', listener);
  t.teardown(() => process.off('uncaughtException', listener));
  const rig = new Rig();
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  rig.onEvent = (event) => {
    if (event.kind === Event.Data) rig.submit(Op.Send, event.id, -1, 1);
  };
  rig.sendNow(client, 'x');
  await rig.next(Event.Data, server);
  await until(() => caught.length > 0, 'the exception');
  t.match(caught, [{ name: 'TypeError', message: /outside of the memory/ }]);
  rig.close();
});

t.test('a transport needs sufficiently large arrays of the right kind', (t) => {
  const shared = (bytes: number) => new SharedArrayBuffer(bytes);
  const good = {
    memory: new Uint8Array(shared(65536)),
    receiveBytes: 65536,
    events: new Int32Array(shared(1024)),
    submissions: new Int32Array(shared(1024)),
    control: new Int32Array(shared(1024)),
    clock: new Float64Array(shared(16)),
    onBatch: () => undefined,
    highWatermark: 1,
    hardLimit: 0,
    receiveLimit: 1,
    reserve: 0,
  };
  shim.createTransport(good).close();
  for (const [wrong, message] of [
    [{ memory: new Uint8Array(65536) }, /memory must be a view of a SharedArrayBuffer/],
    [{ events: new Uint8Array(256) }, /events must be an Int32Array/],
    [{ events: new Int32Array(shared(16)) }, /events is too small/],
    [{ control: new Int32Array(shared(16)) }, /control is too small/],
    [{ clock: new Float64Array(shared(8)) }, /clock is too small/],
    [{ clock: new Int32Array(shared(16)) }, /clock must be a Float64Array/],
    [{ receiveBytes: 65537 }, /receiveBytes is more than memory holds/],
    [{ receiveBytes: 100 }, /receiveBytes/],
    [{ onBatch: undefined }, /onBatch must be a function/],
    [{ highWatermark: -1 }, /highWatermark/],
    [{ hardLimit: Number.NaN }, /hardLimit/],
    [{ receiveLimit: 1.5 }, /receiveLimit/],
    [{ reserve: -1 }, /reserve/],
  ] as const) {
    t.throws(
      () => shim.createTransport({ ...good, ...wrong } as unknown as Parameters<typeof shim.createTransport>[0]),
      {
        name: 'TypeError',
        message,
      },
    );
  }
  t.end();
});

t.test('methods of a closed transport are harmless, and methods refuse other objects', async (t) => {
  const rig = new Rig();
  const { id, address } = rig.listen(loopback);
  rig.close();
  rig.close();
  rig.now(Op.Close, 1);
  t.same(rig.transport.counts(), { connections: 0, listeners: 0, closing: 0 });
  t.equal(rig.transport.pendingBytes(id), 0);
  t.equal(rig.transport.localAddress(id).length, 0);
  t.equal(rig.transport.isStarved(), false);
  t.throws(() => rig.connect(address), { code: 'EBADF' });
  t.throws(() => rig.transport.adopt(0), { code: 'EBADF' });
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  t.throws(() => rig.connect(address), { code: 'EBADF' });
  t.equal(rig.transport.isStarved(), false);
  t.throws(() => rig.transport.flush.call({} as never), { name: 'TypeError' });
  t.throws(() => rig.transport.flush.call(new Map() as never), { name: 'TypeError' });
  t.throws(() => shim.openListenSocket(new Uint8Array(1), {} as never), { name: 'TypeError' });
  t.throws(() => shim.listen(2.5, 1), { name: 'TypeError' });
});

t.test('connect, adopt, removal and close within a batch are safe', async (t) => {
  const rig = new Rig();
  const listener = rig.listen(loopback);
  let closed = false;
  let connects = 0;
  rig.onEvent = (event) => {
    if (event.kind === Event.Accept && connects < 50) {
      connects++;
      rig.send(rig.connect(listener.address), 'from within');
      rig.transport.flush();
    }
    if (event.kind === Event.Data && connects === 50 && rig.of(Event.Data).length >= 40) {
      rig.transport.removeListener(listener.id, true);
      rig.close();
      rig.transportClosed = closed = true;
    }
  };
  rig.connect(listener.address);
  await until(() => closed, 'the close');
  t.same(rig.transport.counts(), { connections: 0, listeners: 0, closing: 0 });
});
