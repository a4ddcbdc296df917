// Connections that no response can close: TCP proxy connections are closed gracefully during the drain; upgraded ones
// stay.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  connectRaw,
  fileAccessLog,
  httpListener,
  routeAllTo,
  startBaton,
  startTcpUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { openStream, type Stream, startPeers } from '../tcp/stream.js';

const peers = await startPeers(t);

const BLOCK = Uint8Array.from({ length: 65_521 }, (_, index) => (index ^ (index >> 8)) & 0xff);

t.test(
  'both ends of a drained TCP connection receive an unbroken prefix of the data, and a graceful close',
  async (t) => {
    const log = join(tempDir(t), 'log');
    const access_log = [fileAccessLog(log, '%CONNECTION_TERMINATION_DETAILS%\n')];
    const baton = await startBaton(t, {
      config: bootstrap({
        listeners: [tcpListener('wire', 0, { cluster: 'peers', access_log })],
        clusters: [staticCluster('peers', peers.port)],
      }),
      args: [
        ...['--concurrency', '2', '--drain-time-s', '2', '--drain-strategy', 'immediate'],
        ...['--file-flush-interval-msec', '50'],
      ],
    });
    const port = await baton.listenerPort('wire');
    const open = async (): Promise<[Stream, Stream]> => [await openStream(t, port), await peers.next()];
    const quiet = await open();
    await quiet[0].write('a request');
    await quiet[1].receives(9);
    await quiet[1].write('a response');
    const busy = await Promise.all([open(), open(), open(), open()]);
    for (const stream of busy.flat()) pump(stream);
    const early = busy.flat().map(({ length }) => length);
    await baton.admin('/drain_listeners?graceful', { method: 'POST' });
    await Promise.all(busy.flat().map((stream, index) => stream.receives(early[index]! + 1_000_000)));
    t.equal(quiet[0].closed, 'open');
    const late = await open();
    for (const stream of [...busy.flat(), ...quiet, ...late]) t.equal(await stream.isClosed(), 'end');
    for (const stream of busy.flat()) t.equal(stream.fingerprint(), beginning(stream.length));
    t.equal(quiet[0].head, 'a response');
    t.equal(quiet[1].head, 'a request');
    await baton.waitForStat('cluster.peers.upstream_cx_active', 0);
    await baton.waitForStat('listener.wire.downstream_cx_active', 0);
    await waitFor(() => readFileSync(log, 'utf8') === 'drain_close\n'.repeat(6), {
      what: 'a log entry with the reason',
    });
  },
);

t.test('with skip_exit connections are drained too, and new ones are accepted', async (t) => {
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [tcpListener('wire', 0, { cluster: 'peers' })],
      clusters: [staticCluster('peers', peers.port)],
    }),
    args: ['--drain-time-s', '1'],
  });
  const port = await baton.listenerPort('wire');
  const [client, server] = [await openStream(t, port), await peers.next()];
  await baton.admin('/drain_listeners?graceful&skip_exit', { method: 'POST' });
  for (const stream of [client, server]) t.equal(await stream.isClosed(), 'end');
  const [later, laterServer] = [await openStream(t, port), await peers.next()];
  await laterServer.write('welcome');
  await later.receives(7);
});

t.test('an upgraded connection outlives the drain, and is closed gracefully when the process ends', async (t) => {
  let hostSaw = '';
  const upstream = await startTcpUpstream(t, (socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n');
      socket.pipe(socket);
      socket.on('end', () => (hostSaw += 'end')).on('error', ({ message }) => (hostSaw += message));
    });
  });
  const manager = { route_config: routeAllTo('echo'), upgrade_configs: [{ upgrade_type: 'websocket' }] };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('web', 0, manager), tcpListener('wire', 0, { cluster: 'peers' })],
      clusters: [staticCluster('echo', upstream.port), staticCluster('peers', peers.port)],
    }),
    args: ['--drain-time-s', '1', '--drain-strategy', 'immediate'],
  });
  const socket = await connectRaw(t, await baton.listenerPort('web'));
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  await socket.readUntil('\r\n\r\n');
  const witness = await openStream(t, await baton.listenerPort('wire'));
  await peers.next();
  await baton.admin('/drain_listeners?graceful', { method: 'POST' });
  await witness.isClosed();
  socket.write('still here');
  t.equal(await socket.read(10), 'still here');
  t.equal(socket.closed, 'open');
  await baton.stop();
  t.same(await socket.readToEnd(), { text: '', closed: 'end' });
  await waitFor(() => hostSaw !== '', { what: 'the host to see the end' });
  t.equal(hostSaw, 'end');
});

/** Sends block after block, 100 a second, until the other side has closed. */
function pump(stream: Stream): void {
  const next = (): void => {
    if (stream.closed !== 'open') stream.end();
    else
      stream.write(BLOCK).then(
        () => setTimeout(next, 10),
        () => undefined,
      );
  };
  next();
}

/** Returns the fingerprint of the first bytes that pump() sends. */
function beginning(length: number): string {
  const hash = createHash('sha256');
  for (let left = length; left > 0; left -= BLOCK.length) hash.update(BLOCK.subarray(0, left));
  return hash.digest('hex');
}
