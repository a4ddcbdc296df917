// Transports coexist, and leave nothing behind, whether closed, collected, exited or terminated.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { Event, Op } from '../../src/io/shim.js';
import type { EchoWorkerData } from './harness/echo-worker.js';
import { listenOptions, loopback, Rig, shim, until } from './harness/harness.js';

/** Starts threads that echo on sockets of one address. */
async function startWorkers(count: number) {
  const address = shim.openListenSocket(loopback, { ...listenOptions, reusePort: true });
  const bound = shim.boundAddress(address);
  const workers: Worker[] = [];
  for (let i = 0; i < count; i++) {
    const fd = i === 0 ? address : shim.openListenSocket(bound, { ...listenOptions, reusePort: true });
    shim.listen(fd, 4096);
    const data: EchoWorkerData = { fd, contended: false };
    const worker = new Worker(new URL('./harness/echo-worker.js', import.meta.url), { workerData: data });
    await new Promise((resolve) => worker.once('message', resolve));
    shim.closeDescriptor(fd);
    workers.push(worker);
  }
  return { workers, address: bound };
}

/** Sends a ball back and forth on connections until stopped. */
function play(rig: Rig, address: Uint8Array, count: number) {
  const state = { returns: 0, resets: 0, stop: false };
  rig.onEvent = (event) => {
    if (event.kind === Event.Connected) rig.send(event.id, 'ball');
    if (event.kind === Event.Data) {
      state.returns++;
      if (!state.stop) rig.send(event.id, 'ball');
    }
    if (event.kind === Event.Reset || event.kind === Event.End) {
      state.resets++;
      rig.submit(Op.Close, event.id);
      if (!state.stop) rig.connect(address);
    }
  };
  for (let i = 0; i < count; i++) rig.connect(address);
  return state;
}

t.test('two transports in a thread are independent', async (t) => {
  const one = new Rig();
  const two = new Rig();
  const { client } = await one.pair(one.listen(loopback).address);
  const other = await two.pair(two.listen(loopback).address);
  t.equal(client, other.client, 'the same ids');
  one.close();
  two.sendNow(other.client, 'still here');
  await two.next(Event.Data, other.server);
  t.equal(two.received(other.server).toString(), 'still here');
  two.close();
});

// Nothing polls here: events that do not wake the thread would never be handled.
t.test('a thread that sleeps in a transport is woken by every kind of event', async (t) => {
  const rigs = [new Rig(), new Rig()];
  for (const [i, rig] of rigs.entries()) {
    rig.onEvent = ({ id, kind, bytes }) => {
      if (kind === Event.Data) rig.send(id, bytes);
    };
    const socket = connect(rig.listen(loopback).port, '127.0.0.1');
    socket.write('ball');
    const [echo] = await once(socket, 'data');
    t.equal(String(echo), 'ball', `transport ${i}, and sockets of Node itself`);
    socket.destroy();
    await once(socket, 'close');
  }
  await new Promise((resolve) => setTimeout(resolve, 1));
  await new Promise((resolve) => setImmediate(resolve));
  const worker = new Worker("require('node:worker_threads').parentPort.postMessage('hello')", { eval: true });
  t.equal((await once(worker, 'message'))[0], 'hello', 'another thread');
  for (const rig of rigs) rig.close();
});

t.test('four threads share an address', async (t) => {
  const { workers, address } = await startWorkers(4);
  const rig = new Rig({ unlogged: true });
  const state = play(rig, address, 64);
  await until(() => state.returns > 2000, 'the balls');
  state.stop = true;
  t.equal(state.resets, 0);
  const answers = await Promise.all(
    workers.map(
      (worker) =>
        new Promise<{ accepted: number; thread: number }>((resolve) => {
          worker.once('message', resolve);
          worker.postMessage('accepted');
        }),
    ),
  );
  t.equal(
    answers.reduce((sum, answer) => sum + answer.accepted, 0),
    64,
  );
  t.equal(new Set(answers.map((answer) => answer.thread)).size, 4, 'each has its own thread id');
  const exits = workers.map((worker) => new Promise<number>((resolve) => worker.once('exit', resolve)));
  for (const worker of workers) worker.postMessage('close');
  t.same(await Promise.all(exits), [0, 0, 0, 0], 'a closed transport keeps no thread alive');
  rig.close();
});

t.test('terminating threads under load aborts nothing and leaks no descriptor', async (t) => {
  const before = descriptors();
  for (let run = 0; run < 6; run++) {
    const { workers, address } = await startWorkers(2);
    const rig = new Rig({ unlogged: true });
    const state = play(rig, address, 32);
    await until(() => state.returns > 200, 'load');
    await Promise.all(workers.map((worker) => worker.terminate()));
    state.stop = true;
    await until(() => state.resets >= 32, 'the resets of the dead threads');
    rig.close();
  }
  t.pass('the process is alive');
  await until(() => descriptors() <= before, 'every descriptor to be closed');
});

t.test('a thread that dies of an exception in onBatch affects no other', async (t) => {
  const before = descriptors();
  const harness = new URL('./harness/harness.js', import.meta.url).href;
  const worker = new Worker(
    `import(${JSON.stringify(harness)}).then(async ({ Rig, loopback }) => {
       const rig = new Rig();
       const { address } = rig.listen(loopback);
       rig.onEvent = () => { throw new Error('deadly'); };
       rig.connect(address);
     });`,
    { eval: true },
  );
  const error = await new Promise<Error>((resolve) => worker.once('error', resolve));
  t.equal(error.message, 'deadly');
  await until(() => descriptors() <= before, 'every descriptor to be closed');
});

t.test('closing releases descriptors and memory', async () => {
  const before = descriptors();
  for (let run = 0; run < 50; run++) {
    const rig = new Rig({ receiveBytes: 65536, scratchBytes: 65536, highWatermark: 1 << 20 });
    const { client, server } = await rig.pair(rig.listen(loopback).address);
    rig.now(Op.Pause, client);
    for (let i = 0; i < 10; i++) rig.sendNow(server, Buffer.alloc(60_000));
    rig.close();
  }
  await until(() => descriptors() <= before, 'every descriptor to be closed');
});

t.test('a process with an open transport exits on process.exit(), and when its transport is closed', async (t) => {
  const harness = new URL('./harness/harness.js', import.meta.url).href;
  const run = (end: string) =>
    promisify(execFile)(process.execPath, [
      '--input-type=module',
      '-e',
      `import { Rig, loopback } from ${JSON.stringify(harness)};
       const rig = new Rig();
       const { client } = await rig.pair(rig.listen(loopback).address);
       rig.sendNow(client, 'x');
       console.log('up');
       ${end}`,
    ]);
  t.equal((await run('process.exit(0);')).stdout, 'up\n');
  t.equal((await run('rig.close();')).stdout, 'up\n');
  t.equal((await run('rig.onEvent = () => process.exit(0);')).stdout, 'up\n');
  await t.rejects(run('rig.onEvent = () => { throw new Error("unhandled"); };'), { code: 1, stderr: /unhandled/ });
});

t.test('descriptors received for a terminated thread are closed', async (t) => {
  const path = '/dev/full';
  const worker = new Worker(new URL('./harness/stuck-worker.js', import.meta.url), { workerData: path });
  t.teardown(() => worker.terminate());
  await once(worker, 'message');
  await worker.terminate();
  const open = readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path;
    } catch {
      return false;
    }
  });
  t.same(open, []);
});

function descriptors(): number {
  return readdirSync('/proc/self/fd').length;
}
