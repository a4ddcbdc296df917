// TLS in the transport, against Node's own client and server.

import { connect as connectTcp, type Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { Event, Op, type TlsContextSettings, TlsVerify } from '../../src/io/shim.js';
import { Certificate } from '../../src/io/tls/certificate.js';
import { readTlsState } from '../../src/io/tls/session-state.js';
import { Authority } from '../e2e/harness/certificates.js';
import { internet, Rig, shim, until } from './harness/harness.js';
import {
  client,
  context,
  echoServer,
  exchange,
  identity,
  loopback,
  root,
  secure,
  server,
  settings,
} from './harness/tls.js';

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  t.test(`${version}: bytes of any length arrive unchanged in both directions`, async (t) => {
    const { rig, port } = echoServer(context());
    for (const length of [1, 100, 16 * 1024, 16 * 1024 + 1, 3_000_000]) {
      const socket = client(port, { minVersion: version, maxVersion: version });
      await secure(socket);
      const sent = Buffer.alloc(length, 'abcdefgh01234567');
      t.ok((await exchange(socket, sent)).equals(sent), `${length} bytes`);
      t.equal(socket.getProtocol(), version);
      socket.end();
      await new Promise((resolve) => socket.once('close', resolve));
    }
    const { id } = rig.of(Event.Secured)[0]!;
    t.equal(readTlsState(rig.transport, id), undefined, 'an ended connection has no state');
    rig.close();
  });
}

t.test('a session reports what it has established', async (t) => {
  const { rig, port } = echoServer(context({ alpn: Buffer.from('\x08http/1.1\x02h2') }));
  const socket = client(port, { ALPNProtocols: ['h2', 'http/1.1'] });
  await secure(socket);
  const { id } = await rig.next(Event.Secured);
  t.match(readTlsState(rig.transport, id), {
    version: 0x0304,
    cipher: /^TLS_/,
    alpn: 'http/1.1',
    serverName: 'server.test',
    isResumed: false,
    hasPeerCertificate: false,
  });
  t.ok(Buffer.from(rig.transport.ownCertificate(id)!).equals(Buffer.from(server.x509.rawData)));
  t.same(rig.transport.peerCertificates(id), []);
  t.equal(socket.alpnProtocol, 'http/1.1', 'the order of the server decides');
  socket.destroy();
  rig.close();
});

t.test('close sends close_notify after all bytes', async (t) => {
  const rig = new Rig();
  rig.onEvent = (event) => {
    if (event.kind === Event.Accept) rig.transport.startTls(event.id, number);
    if (event.kind === Event.Data) {
      rig.send(event.id, Buffer.alloc(900_000, 'x'));
      rig.submit(Op.Close, event.id, 5000, 5000);
    }
  };
  const number = context();
  const socket = client(rig.listen(loopback).port);
  await secure(socket);
  let length = 0;
  let hasEnded = false;
  socket.on('data', (chunk: Buffer) => (length += chunk.length));
  // Node reports an end only after close_notify; a bare FIN is an error.
  socket.on('end', () => (hasEnded = true));
  socket.write('go');
  await new Promise((resolve) => socket.once('close', resolve));
  t.equal(length, 900_000);
  t.ok(hasEnded);
  await until(() => rig.transport.counts().closing === 0, 'the end of the close');
  rig.close();
});

t.test('garbage, plain HTTP and half a hello fail the handshake with a reason', async (t) => {
  const { rig, port } = echoServer(context());
  for (const bytes of [
    'GET / HTTP/1.1\r\nhost: a\r\n\r\n',
    '\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00',
    '\x17\x03\x03\x00\x02hi',
  ]) {
    const failed = rig.of(Event.HandshakeFailed).length;
    const socket = connectTcp(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.resume();
    socket.write(Buffer.from(bytes, 'latin1'));
    await Promise.all([
      rig.next(Event.HandshakeFailed, undefined, failed + 1),
      new Promise((resolve) => socket.once('close', resolve)),
    ]);
  }
  t.pass('each was closed');
  const socket = connectTcp(port, '127.0.0.1');
  socket.end(Buffer.from('\x16\x03\x01\x02', 'latin1'));
  await rig.next(Event.HandshakeFailed, undefined, 4);
  await until(() => rig.transport.counts().connections === 0, 'the end of all connections');
  rig.close();
});

t.test('a client verifies the chain, and the verdict of JavaScript counts', async (t) => {
  const other = await Authority.create('Other Root');
  const peer = createServer({ cert: server.chain, key: server.key }, (socket) =>
    socket.on('error', () => {}).end('hi'),
  );
  peer.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => peer.listen(0, '127.0.0.1', resolve));
  const { port } = peer.address() as { port: number };
  const cases = [
    { roots: root.certificate, verdict: undefined, accepts: true },
    { roots: other.certificate, verdict: undefined, accepts: false },
    { roots: other.certificate, verdict: 0, accepts: true },
    { roots: root.certificate, verdict: 50, accepts: false },
  ];
  for (const { roots, verdict, accepts } of cases) {
    const rig = new Rig({ onVerdict: verdict === undefined ? undefined : () => verdict });
    const number = context({
      isServer: false,
      verify: TlsVerify.Required,
      roots: Buffer.from(roots),
      peerRules: '{}',
    });
    const id = rig.connect(internet('127.0.0.1', port));
    rig.transport.startTls(id, number, 'server.test');
    if (accepts) {
      await rig.next(Event.Secured, id);
      await rig.next(Event.End, id);
      t.equal(rig.received(id).toString(), 'hi');
    } else {
      await rig.next(Event.HandshakeFailed, id);
      t.match(rig.transport.tlsFailure(id), /certificate verify failed/);
    }
    rig.now(Op.Close, id);
    rig.close();
  }
  peer.close();
});

t.test('a client certificate is required, verified and reported', async (t) => {
  const intermediate = await root.issueAuthority('Test Intermediate');
  const user = await intermediate.issue({ names: ['user.test', { type: 'url', value: 'spiffe://td/user' }] });
  const stranger = await (await Authority.create('Other Root')).issue();
  const number = context({ verify: TlsVerify.Required, roots: Buffer.from(root.certificate) });
  const { rig, port } = echoServer(number);
  const good = client(port, { cert: user.chain, key: user.key });
  t.equal((await exchange(good, Buffer.from('hello'))).toString(), 'hello');
  const { id } = await rig.next(Event.Secured);
  const certificates = rig.transport.peerCertificates(id)!;
  t.equal(certificates.length, 2);
  t.match(new Certificate(certificates[0]!), { subject: 'CN=user.test', issuer: 'CN=Test Intermediate' });
  t.match(new Certificate(rig.transport.peerIssuer(id)!), { subject: 'CN=Test Intermediate' });
  const names = shim.describeCertificate(certificates[0]!)!.names;
  t.same(
    names.map(({ type, value }) => [type, Buffer.from(value).toString()]),
    [
      [2, 'user.test'],
      [6, 'spiffe://td/user'],
    ],
  );
  good.destroy();
  for (const options of [{}, { cert: stranger.chain, key: stranger.key }]) {
    const failed = rig.of(Event.HandshakeFailed).length;
    const bad = client(port, options);
    await Promise.all([
      rig.next(Event.HandshakeFailed, undefined, failed + 1),
      new Promise((resolve) => bad.once('close', resolve)),
    ]);
  }
  rig.close();
});

t.test('tickets resume sessions under the same session ID context only', async (t) => {
  shim.setTicketKeys(Buffer.alloc(80, 'k'));
  const first = echoServer(context());
  const same = echoServer(context());
  const other = echoServer(context({ sessionIdContext: Buffer.from('other') }));
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const versions = { minVersion: version, maxVersion: version };
    const socket = client(first.port, versions);
    const session = new Promise<Buffer>((resolve) => socket.once('session', resolve));
    await exchange(socket, Buffer.from('x'));
    const ticket = await session;
    socket.destroy();
    for (const [{ port }, expected] of [
      [same, true],
      [other, false],
    ] as const) {
      const again = client(port, { ...versions, session: ticket });
      await exchange(again, Buffer.from('x'));
      t.equal(again.isSessionReused(), expected, version);
      again.destroy();
    }
  }
  // Another key: the ticket is unreadable.
  const socket = client(first.port);
  const session = new Promise<Buffer>((resolve) => socket.once('session', resolve));
  await exchange(socket, Buffer.from('x'));
  const ticket = await session;
  socket.destroy();
  shim.setTicketKeys(Buffer.concat([Buffer.alloc(80, 'n'), Buffer.alloc(80, 'k')]));
  const previous = client(first.port, { session: ticket });
  await exchange(previous, Buffer.from('x'));
  t.ok(previous.isSessionReused(), 'the predecessor of a key is accepted');
  previous.destroy();
  shim.setTicketKeys(Buffer.alloc(80, 'n'));
  const late = client(first.port, { session: ticket });
  await exchange(late, Buffer.from('x'));
  t.notOk(late.isSessionReused(), 'a removed key is not');
  late.destroy();
  for (const { rig } of [first, same, other]) rig.close();
});

t.test('certificates are selected by SNI, and ECDSA before RSA', async (t) => {
  const issued = await Promise.all([
    root.issue({ names: ['a.test'], key: 'RSA-2048' }),
    root.issue({ names: ['a.test'] }),
    root.issue({ names: ['*.b.test'] }),
    root.issue({ names: [], commonName: 'c.test' }),
  ]);
  const { rig, port } = echoServer(context({ identities: issued.map(identity) }));
  const cases: [string, object, number][] = [
    ['a.test', {}, 1],
    ['A.test', { sigalgs: 'rsa_pss_rsae_sha256' }, 0],
    ['x.b.test', {}, 2],
    ['c.test', {}, 3],
    ['y.x.b.test', {}, 0],
  ];
  for (const [servername, options, expected] of cases) {
    const socket = client(port, { servername, rejectUnauthorized: false, ...options });
    await secure(socket);
    t.ok(socket.getPeerCertificate().raw.equals(Buffer.from(issued[expected]!.x509.rawData)), servername);
    socket.destroy();
  }
  rig.close();
});

t.test('unusable settings are refused with the field and a reason', async (t) => {
  const refused = (changes: Partial<TlsContextSettings>) => shim.createTlsContext(settings(changes));
  const chain = Buffer.from(server.chain);
  t.match(refused({ identities: [{ chain, key: Buffer.from('junk') }] }), {
    field: 'identities[0]',
    reason: /private_key/,
  });
  t.match(refused({ identities: [{ chain: Buffer.from(''), key: Buffer.from(server.key) }] }), {
    reason: /certificate_chain/,
  });
  t.match(refused({ identities: [{ chain, key: Buffer.from(root.key) }] }), { reason: /mismatch/ });
  t.match(refused({ ciphers: 'NONSENSE' }), { field: 'ciphers', reason: /no cipher match/ });
  t.match(refused({ groups: 'P-1' }), { field: 'groups' });
  t.match(refused({ roots: Buffer.from('junk') }), { field: 'roots' });
  t.match(refused({ crl: Buffer.from(server.chain) }), { field: 'crl' });
  t.equal(shim.describeCertificate(Buffer.from('junk')), undefined);
});

t.test('a context lives as long as its connections', async (t) => {
  const before = shim.tlsContextCount();
  const number = context();
  const { rig, port } = echoServer(number);
  const socket = client(port);
  await secure(socket);
  shim.releaseTlsContext(number);
  t.equal(shim.tlsContextCount(), before);
  t.equal((await exchange(socket, Buffer.from('still'))).toString(), 'still');
  socket.destroy();
  t.notOk(rig.transport.startTls(0, number), 'new connections cannot use it');
  rig.close();
});

t.test('a FIN after part of a record ends the stream, and a RST after bytes resets it', async (t) => {
  const { rig, port } = echoServer(context());
  const cases: [string, (socket: TLSSocket, raw: Socket) => void, Event][] = [
    ['part of a record', (_, raw) => raw.end(Buffer.from('\x17\x03\x03\x01\x00part', 'latin1')), Event.End],
    [
      'reset',
      (socket, raw) => {
        socket.write('last');
        raw.resetAndDestroy();
      },
      Event.Reset,
    ],
  ];
  for (const [name, end, expected] of cases) {
    const raw = connectTcp(port, '127.0.0.1').on('error', () => {});
    await new Promise((resolve) => raw.once('connect', resolve));
    const socket = client(port, { socket: raw });
    await exchange(socket, Buffer.from('x'));
    const { id } = rig.of(Event.Secured).at(-1)!;
    // The handle of the socket belongs to TLS: this one writes beside it.
    end(socket, raw);
    await rig.next(expected, id);
    t.pass(name);
    socket.destroy();
  }
  rig.close();
});

t.test('a host that sends HelloRequests without end does not hold the thread', async (t) => {
  const written = new Int32Array(new SharedArrayBuffer(4));
  const flood = `
    const { parentPort, workerData } = require('node:worker_threads');
    const record = Buffer.alloc(5 + 16384);
    record.set([22, 3, 3, 64, 0]);
    const many = Buffer.concat(Array(64).fill(record));
    const server = require('node:net').createServer((socket) => {
      const more = () => {
        do Atomics.add(workerData, 0, 1);
        while (socket.write(many));
      };
      socket.on('drain', more).on('error', () => {}).resume();
      more();
    });
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
  `;
  const worker = new Worker(flood, { eval: true, workerData: written });
  const port = await new Promise<number>((resolve) => worker.once('message', resolve));
  const rig = new Rig();
  const id = rig.connect(internet('127.0.0.1', port));
  const start = 'server.test';
  rig.transport.startTls(id, context({ isServer: false }), start);
  await rig.next(Event.Connected, id);
  await until(() => Atomics.load(written, 0) > 20, 'a long flood');
  t.same(rig.of(Event.HandshakeFailed), [], 'they are ignored, as the protocol requires');
  rig.now(Op.Reset, id);
  rig.close();
  await worker.terminate();
});

t.test(
  'a client offers its own protocols unless its context does, and resumes sessions of its group only',
  async (t) => {
    const peer = createServer({
      cert: server.chain,
      key: server.key,
      ALPNProtocols: ['a', 'b'],
      maxVersion: 'TLSv1.2',
    });
    peer.on('secureConnection', (socket) => socket.on('error', () => {}).end());
    await new Promise<void>((resolve) => peer.listen(0, '127.0.0.1', resolve));
    const { port } = peer.address() as { port: number };
    const rig = new Rig();
    const plain = context({ isServer: false, maxClientSessions: 10 });
    const listed = context({ isServer: false, alpn: Buffer.from('\x01b') });
    const open = async (number: number, alpn: string, group: string) => {
      const id = rig.connect(internet('127.0.0.1', port));
      rig.transport.startTls(id, number, 'server.test', Buffer.from(alpn), group);
      await rig.next(Event.Secured, id);
      const state = readTlsState(rig.transport, id)!;
      rig.now(Op.Close, id);
      return [state.alpn, state.isResumed];
    };
    t.same(await open(plain, '\x01a\x01b', 'one'), ['a', false]);
    t.same(await open(plain, '\x01b', 'one'), ['b', true]);
    t.same(await open(plain, '\x01b', 'two'), ['b', false]);
    t.same(await open(plain, '', 'two'), ['', true]);
    t.same(await open(listed, '\x01a', ''), ['b', false]);
    rig.close();
    peer.close();
  },
);
