// The time from the start of a process to its first response.

import { connect } from 'node:net';

const REQUEST = 'GET /small HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const DEADLINE_MS = 20_000;
const RETRY_MS = 2;

/** Returns the milliseconds until a request to the port on 127.0.0.1 is answered with 200. Throws after 20 seconds. */
export async function timeToFirstAnswer(port: number): Promise<number> {
  const start = performance.now();
  for (;;) {
    const answer = await tryOnce(port);
    const elapsed = performance.now() - start;
    if (answer.startsWith('HTTP/1.1 200')) return elapsed;
    if (elapsed > DEADLINE_MS) {
      throw new Error(`no 200 from port ${port} in ${DEADLINE_MS} ms; the last answer: ${JSON.stringify(answer)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** Returns the beginning of the response, or the error's code. */
function tryOnce(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(REQUEST));
    const finish = (text: string): void => {
      socket.destroy();
      resolve(text);
    };
    socket.setTimeout(1000, () => finish('timeout'));
    socket.once('data', (chunk) => finish(chunk.toString('latin1')));
    socket.once('error', (error: NodeJS.ErrnoException) => finish(error.code ?? error.message));
    socket.once('close', () => finish('closed'));
  });
}
