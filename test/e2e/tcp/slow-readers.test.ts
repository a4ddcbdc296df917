// A slow reader exerts back pressure on the sender instead of growing Baton's memory.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { bootstrap, startBaton, staticCluster, tcpListener, tempDir, waitFor } from '../harness/index.js';
import { fingerprint, openStream, randomBytes, type Stream, startPeers } from './stream.js';

const MIB = 1024 * 1024;
/** Kernel buffers on both legs can take some 20 MiB. */
const OFFERED = 96 * MIB;
const MAX_MEMORY = 32 * MIB;
const CHUNK = randomBytes(8192);

const upstream = await startPeers(t);
const ending = await startPeers(t);
const listener = tcpListener('slow', 0, { cluster: 'upstream' });
const directory = tempDir(t);
const path = join(directory, 'small.sock');
const hostPath = join(directory, 'host.sock');
const resting = await startPeers(t, { path: hostPath });
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      { ...listener, per_connection_buffer_limit_bytes: 65536 },
      // The kernel buffers little between Unix sockets, and always the same amount.
      { ...tcpListener('small', 0, { cluster: 'small' }), address: { pipe: { path } } },
      tcpListener('resting', 0, { cluster: 'resting' }),
    ],
    clusters: [
      staticCluster('upstream', upstream.port, { per_connection_buffer_limit_bytes: 65536 }),
      staticCluster('small', ending.port),
      staticCluster('resting', { pipe: { path: hostPath } }),
    ],
  }),
});
const port = await baton.listenerPort('slow');
const bytes = randomBytes(OFFERED);

for (const slow of ['client', 'server'] as const) {
  t.test(`a ${slow} that does not read stops the other side, and gets every byte once it reads`, async (t) => {
    const client = await openStream(t, port);
    const server = await upstream.next();
    const [reader, writer] = slow === 'client' ? [client, server] : [server, client];
    const before = residentBytes(baton.pid);
    const stopsBefore = await stops();
    reader.socket.pause();
    void writer.write(bytes);
    writer.end();
    const taken = await settled(writer);
    t.ok(taken < OFFERED - 32 * MIB, 'most of it is still at the sender');
    const grown = residentBytes(baton.pid) - before;
    t.comment(
      `kernel and proxy took ${(taken / MIB).toFixed(1)} MiB; resident memory grew by ${(grown / MIB).toFixed(1)} MiB`,
    );
    t.ok(grown < MAX_MEMORY, 'memory is bounded');

    const gauge = slow === 'client' ? 'tcp.slow.downstream' : 'cluster.upstream.upstream';
    const buffered = () => baton.stat(`${gauge}_cx_tx_bytes_buffered`);
    await waitFor(async () => (await buffered())! > 0, { what: 'the gauge of unread bytes' });

    reader.socket.resume();
    t.equal(await reader.isClosed(), 'end');
    t.equal(reader.fingerprint(), fingerprint(bytes));
    const [ofClients, ofServers] = (await stops()).map((count, index) => count - stopsBefore[index]!);
    const [stopped, other] = slow === 'client' ? [ofServers, ofClients] : [ofClients, ofServers];
    t.ok(stopped! > 0, 'the paused side is counted');
    t.equal(other, 0, 'the other side is not');
    const waited = slow === 'client' ? 'cluster.upstream.upstream' : 'tcp.slow.downstream';
    t.ok((await baton.stat(`${waited}_flow_control_resumed_reading_total`))! > 0, 'and its resumption');
    if (slow === 'server') {
      t.ok((await baton.stat('cluster.upstream.upstream_flow_control_backed_up_total'))! > 0);
      t.ok((await baton.stat('cluster.upstream.upstream_flow_control_drained_total'))! > 0);
    }
    await baton.waitForStat(`${gauge}_cx_tx_bytes_buffered`, 0);
  });
}

t.test('a connection that is not read does not delay the others', async (t) => {
  const stuck = await openStream(t, port);
  const stuckServer = await upstream.next();
  stuck.socket.pause();
  void stuckServer.write(bytes).catch(() => {});
  await settled(stuckServer);
  const client = await openStream(t, port);
  const server = await upstream.next();
  void client.write('ping');
  await server.receives(4);
  void server.write('pong');
  await client.receives(4);
  stuck.reset();
  t.equal(await stuckServer.isClosed(), 'reset', 'its close is detected though nothing can be written to it');
});

t.test('when both sides have closed, the remaining bytes wait for a reader that pauses', async (t) => {
  const passedOn = 'tcp.small.downstream_cx_tx_bytes_total';
  const first = await openStream(t, { path });
  first.socket.pause();
  const firstServer = await ending.next();
  const room = await fill(firstServer, passedOn, 'cluster.small.upstream_flow_control_paused_reading_total');
  first.socket.destroy();
  await firstServer.isClosed();
  firstServer.end();

  const client = await openStream(t, { path });
  client.socket.pause();
  const server = await ending.next();
  client.end();
  await server.isClosed();
  for (let sent = 0; sent < room - 4; sent++) await pass(server, passedOn);
  server.end();
  await baton.waitForStat('cluster.small.upstream_cx_active', 0);
  const endedAt = (await baton.stat('server.uptime'))!;
  await waitFor(async () => (await baton.stat('server.uptime'))! > endedAt + 6, {
    what: 'the client to have stopped for long',
  });
  client.socket.resume();
  t.equal(await client.isClosed(), 'end');
  t.equal(client.length, (room - 4) * CHUNK.length);
});

t.test('bytes that a closed client left for a slow host are counted and delivered', async (t) => {
  const restingPort = await baton.listenerPort('resting');
  const passedOn = 'tcp.resting.downstream_cx_rx_bytes_total';
  const first = await openStream(t, restingPort);
  const firstServer = await resting.next();
  firstServer.socket.pause();
  const room = await fill(first, passedOn, 'cluster.resting.upstream_flow_control_backed_up_total');
  first.reset();
  await baton.waitForStat('cluster.resting.upstream_cx_active', 0);

  const client = await openStream(t, restingPort);
  const server = await resting.next();
  server.socket.pause();
  server.end();
  await client.isClosed();
  for (let sent = 0; sent < room - 4; sent++) await pass(client, passedOn);
  t.equal(await baton.stat('tcp.resting.upstream_flush_total'), 0);
  client.end();
  await baton.waitForStat('tcp.resting.upstream_flush_total', 1);
  t.equal(await baton.stat('tcp.resting.upstream_flush_active'), 1);
  server.socket.resume();
  t.equal(await server.isClosed(), 'end');
  t.equal(server.length, (room - 4) * CHUNK.length);
  await baton.waitForStat('tcp.resting.upstream_flush_active', 0);
});

/** Returns how often reading from clients, and from servers, was paused by back pressure. */
async function stops(): Promise<number[]> {
  const names = ['tcp.slow.downstream', 'cluster.upstream.upstream'];
  return Promise.all(names.map(async (name) => (await baton.stat(`${name}_flow_control_paused_reading_total`))!));
}

/** Returns how many chunks a stream with a stalled reader accepts until the proxy pauses it and counts that. */
async function fill(writer: Stream, passedOn: string, stops: string): Promise<number> {
  let room = 0;
  for (; (await baton.stat(stops)) === 0; room++) await pass(writer, passedOn);
  return room;
}

/** Writes a chunk, and waits until the proxy has counted it as forwarded. */
async function pass(writer: Stream, passedOn: string): Promise<void> {
  const before = (await baton.stat(passedOn))!;
  void writer.write(CHUNK);
  await baton.waitForStat(passedOn, before + CHUNK.length);
}

/** Waits until the kernel accepts no more from the writer; returns how many bytes it has accepted. */
async function settled(writer: Stream): Promise<number> {
  let last = -1;
  let same = 0;
  await waitFor(
    () => {
      const taken = takenBytes(writer);
      same = taken === last && taken > 0 ? same + 1 : 0;
      last = taken;
      return same >= 30;
    },
    { what: 'the writer to be stopped' },
  );
  return last;
}

/** Bytes of the single large write of a test. */
function takenBytes({ socket }: Stream): number {
  return OFFERED - (socket as unknown as { _handle: { writeQueueSize: number } })._handle.writeQueueSize;
}

function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024;
}
