// Thousands of short connections that close in every way leave nothing behind.

import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import t from 'tap';
import { Random } from '../../../src/common/random.js';
import {
  bootstrap,
  freePort,
  startBaton,
  startTcpUpstream,
  staticCluster,
  tcpListener,
  waitFor,
} from '../harness/index.js';

const CONNECTIONS = 4000;
const AT_A_TIME = 100;
const SEED = 20_261_120;

const random = new Random(SEED);
const upstream = await startTcpUpstream(t, (socket) => closeRandomly(socket));
const closed = await freePort();
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [tcpListener('wire', 0, { cluster: 'upstream', max_connect_attempts: 2, idle_timeout: '0.3s' })],
    // Some connects fail first.
    clusters: [staticCluster('upstream', [upstream.port, upstream.port, closed])],
  }),
  args: ['--concurrency', '2'],
});
const port = await baton.listenerPort('wire');

t.test(`${CONNECTIONS} connections, each closed by either side, orderly or not`, async (t) => {
  await connections(AT_A_TIME);
  await allAreClosed();
  const descriptors = readdirSync(`/proc/${baton.pid}/fd`).length;
  await connections(CONNECTIONS - AT_A_TIME);
  await allAreClosed();
  t.equal(await baton.stat('tcp.wire.downstream_cx_total'), CONNECTIONS);
  t.equal(
    await baton.stat('cluster.upstream.upstream_cx_destroy'),
    await baton.stat('cluster.upstream.upstream_cx_total'),
  );
  await waitFor(() => readdirSync(`/proc/${baton.pid}/fd`).length <= descriptors, { what: 'descriptors to be closed' });
  t.notMatch(baton.stderr, /internal error|died/);
  await baton.stop();
});

async function connections(count: number): Promise<void> {
  let left = count;
  const one = async (): Promise<void> => {
    while (left-- > 0) await oneConnection();
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, one));
}

/** Resolves when this side of the connection is closed. */
function oneConnection(): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.on('connect', () => closeRandomly(socket));
  });
}

/** Sends bytes or not, then half-closes, closes, resets, or leaves that to the other side. */
function closeRandomly(socket: Socket): void {
  socket.resume();
  socket.on('end', () => socket.end());
  if (random.below(2) === 0) socket.write(Buffer.alloc(random.below(100_000)));
  switch (random.below(5)) {
    case 0:
      socket.end();
      break;
    case 1:
      socket.destroy();
      break;
    case 2:
      socket.resetAndDestroy();
      break;
    case 3:
      socket.once('data', () => socket.resetAndDestroy());
  }
}

/** Waits until no connection gauge is above 0. */
async function allAreClosed(): Promise<void> {
  const active = /^(?:listener\.127|cluster\.).*cx_active: [^0].*$/m;
  await waitFor(async () => !active.test((await baton.admin('/stats')).body), { what: 'the end of all connections' });
}
