// A child that is not live yet has accepted no connection, so that its death loses none.

import { readdirSync, readlinkSync } from 'node:fs';
import t from 'tap';
import {
  bootstrap,
  connectRaw,
  EpochLine,
  httpListener,
  type RawConnection,
  waitFor,
  waitForLog,
} from '../harness/index.js';

const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const CONNECTIONS = 64;

/** Three of the main thread, two of a worker, one of a worker that hangs. */
const LOOPS = 6;

/** The second worker of the process never runs its first line; the first one is up, the configuration is read. */
const HANGING_WORKER = `data:text/javascript,
  import { threadId, workerData } from 'node:worker_threads';
  if (threadId === 3) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;

t.test('connections that arrive while the workers of a child start are served by the parent', async (t) => {
  const route = { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'here' } } };
  const config = bootstrap({
    listeners: [
      httpListener('http', 0, { route_config: { virtual_hosts: [{ name: 'a', domains: ['*'], routes: [route] }] } }),
    ],
    clusters: [],
  });
  const line = new EpochLine(t);
  const args = ['--concurrency', '2'];
  const parent = await line.start(0, { config, args });
  const port = await parent.listenerPort('http');
  const child = await line.start(1, { config, args, nodeArgs: ['--import', HANGING_WORKER], wait: 'spawned' });
  await waitForLog(child, 'starting workers');
  await waitFor(() => loopsOf(child.pid) >= LOOPS, { what: 'the first worker' });

  const connections: RawConnection[] = [];
  for (let index = 0; index < CONNECTIONS; index++) {
    const connection = await connectRaw(t, port);
    connections.push(connection);
    connection.write(REQUEST);
    await connection.readUntil('here');
  }
  await child.kill('SIGKILL');
  for (const connection of connections) {
    connection.write(REQUEST);
    await connection.readUntil('here');
  }
  t.equal(await parent.stat('listener_manager.listener_stopped'), 0);
  await parent.stop();
});

/** Returns the number of epoll instances of a process. */
function loopsOf(pid: number): number {
  const directory = `/proc/${pid}/fd`;
  return readdirSync(directory).filter((fd) => readlinkSync(`${directory}/${fd}`).includes('eventpoll')).length;
}
