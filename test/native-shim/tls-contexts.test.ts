// TLS contexts that are replaced and released while connections use them.

import { connect as connectTcp } from 'node:net';
import type { TLSSocket } from 'node:tls';
import t from 'tap';
import { Event, TlsVerify } from '../../src/io/shim.js';
import { readTlsState } from '../../src/io/tls/session-state.js';
import { shim, until } from './harness/harness.js';
import { client, context, echoServer, exchange, identity, root, secure } from './harness/tls.js';

const REPLACEMENTS = 40;
const AT_ONCE = 8;

const pairs = [
  await root.issue({ names: ['a.test', 'server.test'] }),
  await root.issue({ names: ['b.test', 'server.test'] }),
];
const user = await root.issue({ names: ['user.test'] });

function version(index: number): number {
  return context({
    identities: [identity(pairs[index % 2]!)],
    verify: TlsVerify.Optional,
    roots: Buffer.from(root.certificate),
    sessionIdContext: Buffer.from(String(index % 2)),
  });
}

function nameOf(socket: TLSSocket): string {
  return String(socket.getPeerCertificate().subject.CN);
}

for (const protocol of ['TLSv1.2', 'TLSv1.3'] as const) {
  const options = { minVersion: protocol, maxVersion: protocol, cert: user.chain, key: user.key };

  t.test(`${protocol}: a context is replaced while clients connect, and none fails`, async (t) => {
    const number = shim.reserveTlsContext(true);
    shim.replaceTlsContext(number, version(0));
    const { rig, port } = echoServer(number);
    const names = new Set<string>();
    const failures: string[] = [];
    const open: TLSSocket[] = [];
    let isEnding = false;
    let handshakes = 0;
    let session: Buffer | undefined;
    const loop = async () => {
      while (!isEnding) {
        // Half of them try to resume a session, which may be of the other version.
        const socket = client(port, { ...options, ...(handshakes % 2 === 1 && session && { session }) });
        socket.on('session', (bytes: Buffer) => {
          session = bytes;
        });
        try {
          await secure(socket);
          handshakes++;
          if (!socket.isSessionReused()) names.add(nameOf(socket));
          if (String(await exchange(socket, Buffer.from('hello'))) !== 'hello') failures.push('other bytes');
        } catch (error) {
          failures.push(String(error));
        }
        // Some stay open, over several replacements.
        if (open.push(socket) > AT_ONCE) open.shift()!.destroy();
      }
    };
    const loops = Array.from({ length: AT_ONCE }, loop);
    for (let index = 1; index <= REPLACEMENTS; index++) {
      const before = handshakes;
      await until(() => handshakes > before + 1, 'more handshakes');
      shim.replaceTlsContext(number, version(index));
    }
    isEnding = true;
    await Promise.all(loops);
    t.same(failures, []);
    t.same([...names].sort(), ['a.test', 'b.test']);
    for (const socket of open) t.equal(String(await exchange(socket, Buffer.from('bye'))), 'bye');
    for (const socket of open) socket.destroy();
    shim.releaseTlsContext(number);
    await until(() => rig.transport.counts().connections === 0, 'the end of all connections');
    rig.close();
  });

  t.test(`${protocol}: a context is replaced and released in the middle of a handshake`, async (t) => {
    const number = version(0);
    const { rig, port } = echoServer(number);
    // Part of the ClientHello has arrived: the handshake goes on with the context that it began with.
    const halves = Array.from({ length: 4 }, () => connectTcp(port, '127.0.0.1'));
    for (const socket of halves) socket.on('error', () => {}).write(Buffer.from('\x16\x03\x01\x02\x00\x01', 'latin1'));
    await until(() => rig.of(Event.Accept).length === halves.length, 'half handshakes');
    shim.replaceTlsContext(number, version(1));
    const socket = client(port, options);
    await secure(socket);
    t.equal(nameOf(socket), 'b.test');
    shim.releaseTlsContext(number);
    halves[0]!.write('junk');
    for (const half of halves) half.end();
    await until(() => rig.of(Event.HandshakeFailed).length === halves.length, 'the end of the half handshakes');
    t.equal(String(await exchange(socket, Buffer.from('still'))), 'still');
    const { id } = rig.of(Event.Secured)[0]!;
    t.match(readTlsState(rig.transport, id), { hasPeerCertificate: true, isPeerVerified: true });
    t.equal(rig.transport.peerCertificates(id)!.length > 0, true);
    socket.destroy();
    await until(() => rig.transport.counts().connections === 0, 'the end of all connections');
    rig.close();
  });
}
