// A TCP proxy between Unix sockets and TCP, in every combination.

import { readFileSync, renameSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { bootstrap, startBaton, staticCluster, tcpListener, tempDir } from '../harness/index.js';
import { fingerprint, openStream, randomBytes, startPeers } from './stream.js';

const directory = tempDir(t);
const upstreamPath = join(directory, 'upstream.sock');
const listenerPath = join(directory, 'listener.sock');
const abstractName = `@baton-test-${process.pid}`;

const onPath = await startPeers(t, { path: upstreamPath });
const onPort = await startPeers(t);

// What a killed process leaves behind: a socket file without a listener.
await leaveStaleSocket(listenerPath);

const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      tcpListener('tcp-to-path', 0, { cluster: 'path' }),
      { ...tcpListener('path-to-tcp', 0, { cluster: 'port' }), address: { pipe: { path: listenerPath, mode: 0o600 } } },
      // Node pads abstract names with zeros, so both ends of the abstract socket are Baton's.
      tcpListener('tcp-to-abstract-to-path', 0, { cluster: 'abstract' }),
      { ...tcpListener('abstract-to-path', 0, { cluster: 'path' }), address: { pipe: { path: abstractName } } },
    ],
    clusters: [
      staticCluster('path', { pipe: { path: upstreamPath } }),
      staticCluster('abstract', { pipe: { path: abstractName } }),
      staticCluster('port', onPort.port),
    ],
  }),
  args: ['--concurrency', '2'],
});

const routes = [
  { name: 'tcp-to-path', peers: onPath },
  { name: 'path-to-tcp', peers: onPort, path: listenerPath },
  { name: 'tcp-to-abstract-to-path', peers: onPath },
];

for (const { name, peers, path } of routes) {
  t.test(`${name}: bytes and half-closes are forwarded in both directions`, async (t) => {
    const client = await openStream(t, path === undefined ? await baton.listenerPort(name) : { path });
    const server = await peers.next();
    const up = randomBytes(2_000_000);
    const down = randomBytes(3_000_000);
    void client.write(up);
    client.end();
    t.equal(await server.isClosed(), 'end');
    t.equal(server.fingerprint(), fingerprint(up));
    void server.write(down);
    server.end();
    t.equal(await client.isClosed(), 'end');
    t.equal(client.fingerprint(), fingerprint(down));
  });
}

t.test('an abstract name is bound as it is written, without padding', (t) => {
  t.match(readFileSync('/proc/net/unix', 'utf8'), new RegExp(`^.* ${abstractName}$`, 'm'));
  t.end();
});

t.test('both workers serve one Unix socket', async (t) => {
  const clients = await Promise.all(Array.from({ length: 40 }, () => openStream(t, { path: listenerPath })));
  const servers = await Promise.all(clients.map(() => onPort.next()));
  for (const server of servers) server.socket.end('served');
  for (const client of clients) {
    await client.isClosed();
    t.equal(client.head, 'served');
    client.end();
  }
});

t.test('pipe.mode is the mode of the socket file', (t) => {
  const { mode } = statSync(listenerPath);
  t.equal(mode & 0o777, 0o600);
  t.end();
});

async function leaveStaleSocket(path: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${path}.old`, resolve));
  renameSync(`${path}.old`, path);
  await new Promise((resolve) => server.close(resolve));
}
