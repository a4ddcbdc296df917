// Connections that no response can close: as in Envoy, those of TCP proxies and upgraded ones outlive the drain. They end in an orderly way
// with the process.

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
  waitForLog,
} from '../harness/index.js';
import { openStream, type Stream, startPeers } from '../tcp/stream.js';

const peers = await startPeers(t);
const DRAINED = 'the time to drain is over';

const BLOCK = Uint8Array.from({ length: 65_521 }, (_, index) => (index ^ (index >> 8)) & 0xff);

t.test(
  'a TCP connection outlives the drain; both ends receive an unbroken prefix of the data, and a graceful close with the process',
  async (t) => {
    const log = join(tempDir(t), 'log');
    const access_log = [fileAccessLog(log, '%CONNECTION_TERMINATION_DETAILS%\n')];
    const baton = await startBaton(t, {
      config: bootstrap({
        listeners: [tcpListener('wire', 0, { cluster: 'peers', access_log })],
        clusters: [staticCluster('peers', peers.port)],
      }),
      args: [
        ...['-l', 'info', '--concurrency', '2', '--drain-time-s', '1', '--drain-strategy', 'immediate'],
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
    const late = await open();
    await baton.admin('/drain_listeners?graceful', { method: 'POST' });
    await waitForLog(baton, DRAINED);
    await baton.waitForStat('listener_manager.listener_stopped', 1);
    const before = busy.flat().map(({ length }) => length);
    await Promise.all(busy.flat().map((stream, index) => stream.receives(before[index]! + 1_000_000)));
    t.ok(before.every((length, index) => length >= early[index]!));
    t.equal(quiet[0].closed, 'open');
    await late[0].write('welcome');
    await late[1].receives(7);
    const stopped = baton.stop();
    for (const stream of [...busy.flat(), ...quiet, ...late]) t.equal(await stream.isClosed(), 'end');
    for (const stream of busy.flat()) t.equal(stream.fingerprint(), beginning(stream.length));
    t.equal(quiet[0].head, 'a response');
    t.equal(quiet[1].head, 'a request');
    await stopped;
    await waitFor(() => readFileSync(log, 'utf8') === 'drain_close\n'.repeat(6), {
      what: 'a log entry with the reason',
    });
  },
);

t.test('with skip_exit connections continue too, and new ones are accepted', async (t) => {
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [tcpListener('wire', 0, { cluster: 'peers' })],
      clusters: [staticCluster('peers', peers.port)],
    }),
    args: ['-l', 'info', '--drain-time-s', '1'],
  });
  const port = await baton.listenerPort('wire');
  const [client, server] = [await openStream(t, port), await peers.next()];
  await baton.admin('/drain_listeners?graceful&skip_exit', { method: 'POST' });
  await waitForLog(baton, DRAINED);
  await client.write('still here');
  await server.receives(10);
  const [later, laterServer] = [await openStream(t, port), await peers.next()];
  await laterServer.write('welcome');
  await later.receives(7);
});

t.test('check_drain_close ends a connection when data passes, if the drain selects it', async (t) => {
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [tcpListener('wire', 0, { cluster: 'peers', check_drain_close: true })],
      clusters: [staticCluster('peers', peers.port)],
    }),
    args: ['-l', 'info', '--drain-time-s', '1', '--drain-strategy', 'immediate'],
  });
  const port = await baton.listenerPort('wire');
  const open = async (): Promise<[Stream, Stream]> => [await openStream(t, port), await peers.next()];
  const [silent, asked, answered] = [await open(), await open(), await open()];
  await baton.admin('/drain_listeners?graceful', { method: 'POST' });
  await waitForLog(baton, DRAINED);
  await asked[0].write('a request');
  await answered[1].write('a response');
  for (const stream of [...asked, ...answered]) t.equal(await stream.isClosed(), 'end');
  t.equal(asked[1].head, 'a request', 'which is forwarded');
  t.equal(answered[0].head, 'a response');
  t.equal(silent[0].closed, 'open');
  await baton.waitForStat('tcp.wire.downstream_cx_drain_close', 2);
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
      listeners: [httpListener('web', 0, manager)],
      clusters: [staticCluster('echo', upstream.port)],
    }),
    args: ['-l', 'info', '--drain-time-s', '1', '--drain-strategy', 'immediate'],
  });
  const socket = await connectRaw(t, await baton.listenerPort('web'));
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  await socket.readUntil('\r\n\r\n');
  await baton.admin('/drain_listeners?graceful', { method: 'POST' });
  await waitForLog(baton, DRAINED);
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
