// A server that listens and never accepts: connection attempts are neither refused nor answered.

import { once } from 'node:events';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import type { Teardown } from '../harness/index.js';

/** Resolves with its port when its queue is full. */
export async function startDeafServer(t: Teardown): Promise<number> {
  const worker = new Worker(
    `const { createServer } = require('node:net');
     const { parentPort } = require('node:worker_threads');
     const server = createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port);
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
     });`,
    { eval: true },
  );
  t.teardown(() => worker.terminate());
  const [port] = (await once(worker, 'message')) as [number];
  // More attempts than the queue holds; some never succeed, and all go with the test.
  for (let i = 0; i < 8; i++) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    t.teardown(() => socket.destroy());
    if (i === 0) await once(socket, 'connect');
  }
  return port;
}
