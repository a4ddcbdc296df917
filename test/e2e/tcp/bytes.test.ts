// A TCP proxy is transparent: bytes, half-closes and resets arrive as they were sent.

import t from 'tap';
import { bootstrap, startBaton, staticCluster, type Teardown, tcpListener, waitFor } from '../harness/index.js';
import { fingerprint, openStream, randomBytes, type Stream, startPeers } from './stream.js';

const upstream = await startPeers(t);
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [tcpListener('wire', 0, { cluster: 'upstream' })],
    clusters: [staticCluster('upstream', upstream.port)],
  }),
  args: ['--concurrency', '2'],
});
const port = await baton.listenerPort('wire');

t.test('bytes arrive as they were sent, in both directions at once', async (t) => {
  const { client, server } = await openPair(t);
  const up = randomBytes(48 * 1024 * 1024 + 7);
  const down = randomBytes(32 * 1024 * 1024 + 13);
  await Promise.all([client.write(up), server.write(down), server.receives(up.length), client.receives(down.length)]);
  client.end();
  server.end();
  t.equal(await client.isClosed(), 'end');
  t.equal(await server.isClosed(), 'end');
  t.equal(server.fingerprint(), fingerprint(up), 'client to server');
  t.equal(client.fingerprint(), fingerprint(down), 'server to client');
});

t.test('many connections at once do not mix', async (t) => {
  const pairs: { client: Stream; bytes: Buffer }[] = [];
  for (let index = 0; index < 64; index++) {
    pairs.push({ client: await openStream(t, port), bytes: randomBytes(1 + index * 4099) });
  }
  const servers = await Promise.all(pairs.map(() => upstream.next()));
  for (const server of servers) server.socket.pipe(server.socket);
  await Promise.all(
    pairs.map(async ({ client, bytes }, index) => {
      const step = 1 + index * 97;
      for (let at = 0; at < bytes.length; at += step) void client.write(bytes.subarray(at, at + step));
      client.end();
      await client.isClosed();
    }),
  );
  for (const { client, bytes } of pairs) {
    t.equal(client.closed, 'end');
    t.equal(client.fingerprint(), fingerprint(bytes), `${bytes.length} bytes came back`);
  }
});

t.test('a server that speaks first is forwarded', async (t) => {
  const { client, server } = await openPair(t);
  void server.write('220 ready\r\n');
  await client.receives(11);
  t.equal(client.head, '220 ready\r\n');
});

t.test('bytes sent before the upstream connection is established are not lost', async (t) => {
  const client = await openStream(t, port);
  const bytes = randomBytes(3 * 1024 * 1024);
  void client.write(bytes);
  client.end();
  const server = await upstream.next();
  t.equal(await server.isClosed(), 'end');
  t.equal(server.fingerprint(), fingerprint(bytes));
});

t.test('the client half-closes first: the server still answers', async (t) => {
  const { client, server } = await openPair(t);
  const request = randomBytes(500_000);
  const response = randomBytes(5_000_000);
  void client.write(request);
  client.end();
  t.equal(await server.isClosed(), 'end', 'the server sees the end');
  t.equal(server.fingerprint(), fingerprint(request), 'after every byte');
  t.equal(client.closed, 'open');
  void server.write(response);
  server.end();
  t.equal(await client.isClosed(), 'end');
  t.equal(client.fingerprint(), fingerprint(response));
});

t.test('the server half-closes first: the client can still send', async (t) => {
  const { client, server } = await openPair(t);
  const greeting = randomBytes(500_000);
  const rest = randomBytes(5_000_000);
  void server.write(greeting);
  server.end();
  t.equal(await client.isClosed(), 'end', 'the client sees the end');
  t.equal(client.fingerprint(), fingerprint(greeting), 'after every byte');
  t.equal(server.closed, 'open');
  void client.write(rest);
  client.end();
  t.equal(await server.isClosed(), 'end');
  t.equal(server.fingerprint(), fingerprint(rest));
});

t.test("a client's reset is a reset for the server", async (t) => {
  const { client, server } = await openPair(t);
  void client.write('half a request');
  await server.receives(14);
  client.reset();
  t.equal(await server.isClosed(), 'reset');
});

t.test("a server's reset is a reset for the client", async (t) => {
  const { client, server } = await openPair(t);
  void server.write('half an answer');
  await client.receives(14);
  server.reset();
  t.equal(await client.isClosed(), 'reset');
});

t.test('a server that resets does not look complete to a client that has half-closed', async (t) => {
  const { client, server } = await openPair(t);
  client.end();
  await server.isClosed();
  void server.write('half an answer');
  await client.receives(14);
  server.reset();
  t.equal(await client.isClosed(), 'reset');
});

t.test('a client that resets does not look complete to a server that has half-closed', async (t) => {
  const { client, server } = await openPair(t);
  server.end();
  await client.isClosed();
  void client.write('half a request');
  await server.receives(14);
  client.reset();
  t.equal(await server.isClosed(), 'reset');
});

t.test('closed connections leave nothing behind', async (t) => {
  for (const { socket } of upstream.streams) socket.destroy();
  const active = /^(?:listener\.127\.0\.0\.1_\d+\..*|cluster\..*)cx_active: [^0].*$/m;
  await waitFor(async () => !active.test((await baton.admin('/stats')).body));
  t.equal(await baton.stat('cluster.upstream.upstream_cx_total'), upstream.streams.length);
  t.equal(await baton.stat('tcp.wire.downstream_cx_total'), upstream.streams.length);
});

/** Opens a connection through the proxy, and returns both of its ends. */
async function openPair(t: Teardown): Promise<{ client: Stream; server: Stream }> {
  const client = await openStream(t, port);
  return { client, server: await upstream.next() };
}
