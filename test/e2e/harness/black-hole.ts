// A port that drops connection attempts: its accept queue is full and never drained, so the kernel drops each SYN.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import type { Teardown } from './environment.js';
import { withDeadline } from './wait-for.js';

const BACKLOG = 1;

/** The event loop of this thread is blocked until the test ends. */
const THREAD = `
const { parentPort } = require('node:worker_threads');
const server = require('node:net').createServer();
server.listen({ port: 0, host: '127.0.0.1', backlog: ${BACKLOG} }, () => {
  parentPort.postMessage(server.address().port);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
});
`;

/** Starts the thread, and returns the port. */
export async function startBlackHole(t: Teardown): Promise<number> {
  const thread = new Worker(THREAD, { eval: true });
  t.teardown(() => thread.terminate());
  const [port] = (await withDeadline(once(thread, 'message'), 'the black hole')) as [number];
  while (!isFull(port)) {
    const socket = connect(port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    await withDeadline(once(socket, 'connect'), 'a slot in the accept queue');
    socket.on('error', () => {});
  }
  return port;
}

/** For a listening socket, /proc/net/tcp shows the length of the accept queue; the kernel accepts one more than the backlog. */
function isFull(port: number): boolean {
  const address = `:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 0A [0-9A-F]+:([0-9A-F]+)`;
  const [, waiting] = new RegExp(address).exec(readFileSync('/proc/net/tcp', 'latin1'))!;
  return Number.parseInt(waiting!, 16) > BACKLOG;
}
