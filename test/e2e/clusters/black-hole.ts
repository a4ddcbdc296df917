// A port that swallows connects: the accept queue is full and nobody accepts, so the kernel drops what comes.

import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { type Teardown, withDeadline } from '../harness/index.js';

const THREAD = `
const { parentPort, workerData } = require('node:worker_threads');
const server = require('node:net').createServer();
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  parentPort.postMessage(server.address().port);
  // The thread's loop stands still until the test ends: nothing is accepted.
  setImmediate(() => {
    Atomics.wait(workerData, 0, 0);
    process.exit();
  });
});
`;

/** How long a connect may take before it counts as swallowed. */
const SWALLOWED_MS = 250;

/** Returns the port. */
export async function startBlackHole(t: Teardown): Promise<number> {
  const release = new Int32Array(new SharedArrayBuffer(4));
  const thread = new Worker(THREAD, { eval: true, workerData: release });
  const sockets: Socket[] = [];
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    Atomics.store(release, 0, 1);
    Atomics.notify(release, 0);
    await thread.terminate();
  });
  const port = await withDeadline(new Promise<number>((resolve) => thread.once('message', resolve)), 'the black hole');
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    sockets.push(socket);
    const isTaken = await Promise.race([
      new Promise((resolve) => socket.once('connect', () => resolve(true))),
      new Promise((resolve) => setTimeout(() => resolve(false), SWALLOWED_MS)),
    ]);
    if (!isTaken) return port;
  }
}
