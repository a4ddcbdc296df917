// Errors in submissions to the shim and in handlers.

import { type AddressInfo, createServer } from 'node:net';
import t from 'tap';
import { encodeIp } from '../../src/io/addresses/address.js';
import { Memory } from '../../src/io/memory.js';
import { loadShim } from '../../src/io/shim.js';
import { Clock } from '../../src/io/time/clock.js';
import { bufferLimits } from '../../src/io/transport/buffer-limits.js';
import { Transport } from '../../src/io/transport/transport.js';
import { waitFor } from '../e2e/harness/wait-for.js';

t.test('submissions completed before an invalid one are not repeated', async (t) => {
  const caught: unknown[] = [];
  const listener = (error: unknown) => caught.push(error);
  process.on('uncaughtException', listener);
  t.teardown(() => process.off('uncaughtException', listener));
  const memory = new Memory();
  const limits = bufferLimits(1 << 20);
  const transport = new Transport(loadShim(), memory, new Clock(), limits, 0, (error) => caught.push(error));
  t.teardown(() => transport.destroy());
  let received = '';
  const server = createServer((socket) => socket.on('data', (bytes) => (received += bytes)));
  t.teardown(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  let isConnected = false;
  const id = transport.connect(
    encodeIp('127.0.0.1', port),
    { sourceAddress: undefined, keepalive: undefined },
    limits,
    {
      onConnected: () => (isConnected = true),
      onData: () => undefined,
      onEnd: () => undefined,
      onReset: () => undefined,
      onBlocked: () => undefined,
      onDrained: () => undefined,
      onFault: () => undefined,
    },
  );
  await waitFor(() => isConnected);
  const send = (text: string) => {
    const at = memory.scratch(text.length);
    memory.write(at, text);
    transport.send(id, at, text.length);
  };
  send('first ');
  transport.send(id, memory.bytes.length, 1);
  await waitFor(() => caught.length > 0);
  t.match(caught, [{ name: 'TypeError', message: /outside of the memory/ }]);
  send('second ');
  await waitFor(() => received.includes('second'));
  t.equal(received, 'first second ');
  t.equal(caught.length, 1);
});

t.test('a handler that throws when notified of its own exception loses only its connection', async (t) => {
  const caught: unknown[] = [];
  const uncaught: unknown[] = [];
  const listener = (error: unknown) => uncaught.push(error);
  process.on('uncaughtException', listener);
  t.teardown(() => process.off('uncaughtException', listener));
  const limits = bufferLimits(1 << 20);
  const transport = new Transport(loadShim(), new Memory(), new Clock(), limits, 0, (error) => caught.push(error));
  t.teardown(() => transport.destroy());
  let isClosed = false;
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('close', () => (isClosed = true));
    socket.write('hello');
  });
  t.teardown(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const fail = (what: string) => () => {
    throw new Error(what);
  };
  const handler = {
    onConnected: () => undefined,
    onData: fail('in onData'),
    onEnd: () => undefined,
    onReset: () => undefined,
    onBlocked: () => undefined,
    onDrained: () => undefined,
    onFault: fail('in onFault'),
  };
  transport.connect(encodeIp('127.0.0.1', port), { sourceAddress: undefined, keepalive: undefined }, limits, handler);
  await waitFor(() => isClosed);
  t.match(caught, [{ message: 'in onData' }, { message: 'in onFault' }]);
  t.same(uncaught, []);
});
