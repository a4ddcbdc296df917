// Listening on every kind of address, sharing a socket, and stopping without losing connections.

import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import t from 'tap';
import { Event, Op } from '../../src/io/shim.js';
import { internet, listenOptions, loopback, portOf, Rig, shim, socketPath, unix, until } from './harness/harness.js';

t.test('IPv4, IPv6, Unix and abstract listeners carry bytes in both directions', async (t) => {
  const path = socketPath();
  for (const [name, address] of [
    ['IPv4', loopback],
    ['IPv6', internet('::1')],
    ['Unix', unix(path)],
    ['abstract', unix(`@baton-shim-${process.pid}`)],
  ] as const) {
    const rig = new Rig();
    const listener = rig.listen(address);
    const { client, server } = await rig.pair(listener.address);
    rig.sendNow(client, 'there');
    await rig.next(Event.Data, server);
    rig.sendNow(server, 'and back');
    await rig.next(Event.Data, client);
    t.equal(rig.received(server).toString(), 'there', name);
    t.equal(rig.received(client).toString(), 'and back', name);
    const accept = rig.of(Event.Accept, server)[0]!;
    t.equal(accept.listener, listener.id);
    t.same(accept.bytes, Buffer.from(rig.transport.localAddress(client)), "Accept has the peer's address");
    t.equal(accept.bytes.readUInt16LE(0), address[0], 'in its family');
    if (portOf(address) !== 0 || name.startsWith('IP')) {
      t.equal(portOf(accept.bytes), portOf(rig.transport.localAddress(client)));
      t.equal(portOf(rig.transport.localAddress(server)), listener.port);
    }
    rig.close();
  }
  t.ok(existsSync(path), 'the shim removes no files');
});

t.test('addresses that cannot be bound or listened on are refused by code', (t) => {
  const fd = shim.openListenSocket(loopback, listenOptions);
  t.teardown(() => shim.closeDescriptor(fd));
  shim.listen(fd, 16);
  const taken = shim.boundAddress(fd);
  t.throws(() => shim.openListenSocket(taken, listenOptions), { code: 'EADDRINUSE' });
  t.throws(() => shim.openListenSocket(internet('203.0.113.1'), listenOptions), { code: 'EADDRNOTAVAIL' });
  t.throws(() => shim.openListenSocket(unix('/nonexistent/socket'), listenOptions), { code: 'ENOENT' });
  t.throws(() => shim.listen(99_999, 16), { code: 'EBADF' });
  t.throws(() => shim.duplicate(99_999), { code: 'EBADF' });
  t.throws(() => shim.boundAddress(99_999), { code: 'EBADF' });
  t.throws(() => shim.closeDescriptor(99_999), { code: 'EBADF' });
  const copy = shim.duplicate(fd);
  t.same(shim.boundAddress(copy), taken);
  shim.closeDescriptor(copy);
  t.end();
});

t.test('SO_REUSEPORT lets several sockets share an address, and freebind binds foreign addresses', async (t) => {
  const rig = new Rig();
  const first = rig.listen(loopback, { reusePort: true });
  const second = rig.listen(first.address, { reusePort: true });
  for (let i = 0; i < 40; i++) rig.connect(first.address);
  await rig.next(Event.Accept, undefined, 40);
  t.same(new Set(rig.of(Event.Accept).map((event) => event.listener)), new Set([first.id, second.id]));
  const fd = shim.openListenSocket(internet('203.0.113.1'), { ...listenOptions, freebind: true });
  shim.closeDescriptor(fd);
  rig.close();
});

t.test('keepalive, and an IPv6 socket for both families, are supported', async (t) => {
  const rig = new Rig();
  const { port } = rig.listen(internet('::'), { v6Only: false, keepalive: { idle: 30, interval: 5, probes: 3 } });
  const peer = connect(port, '127.0.0.1');
  const { bytes } = await rig.next(Event.Accept);
  t.equal(bytes.subarray(8, 24).toString('hex'), '00000000000000000000ffff7f000001', 'a mapped peer');
  peer.destroy();
  const client = rig.connect(rig.listen(loopback).address);
  rig.transport.keepAlive(client, { idle: 30, interval: 5, probes: 3 });
  t.throws(() => rig.transport.keepAlive(client, { probes: 128 }), { code: 'EINVAL' });
  rig.transport.keepAlive(rig.connect(rig.listen(unix(socketPath())).address), { idle: 30 });
  rig.transport.keepAlive(-1 >>> 1, {});
  rig.close();
});

t.test('connects use the given source address', async (t) => {
  const rig = new Rig();
  const { address } = rig.listen(loopback);
  const id = rig.connect(address, internet('127.0.0.77'));
  const { bytes } = await rig.next(Event.Accept);
  t.same([...bytes.subarray(4, 8)], [127, 0, 0, 77]);
  const refused = rig.connect(address, internet('203.0.113.1'));
  t.equal((await rig.next(Event.Reset, refused)).value, 99, 'EADDRNOTAVAIL');
  t.equal(rig.of(Event.Connected, id).length, 1);
  rig.close();
});

t.test('a listener that stops accepting leaves connections in the backlog until it resumes', async (t) => {
  const rig = new Rig();
  const { id, address } = rig.listen(loopback);
  rig.transport.setAccepting(id, false);
  const client = rig.connect(address);
  await rig.next(Event.Connected, client);
  t.equal(rig.of(Event.Accept).length, 0);
  rig.transport.setAccepting(id, true);
  await rig.next(Event.Accept);
  rig.close();
});

t.test('a removed listener accepts the rest of its backlog and refuses later connections', async (t) => {
  const rig = new Rig();
  const { id, address } = rig.listen(loopback);
  rig.transport.setAccepting(id, false);
  const clients = Array.from({ length: 200 }, () => rig.connect(address));
  await rig.next(Event.Connected, undefined, 200);
  t.equal(rig.of(Event.Accept).length, 0);
  rig.transport.removeListener(id, true);
  await until(() => rig.transport.counts().listeners === 0, 'the queue to be empty');
  t.equal(rig.of(Event.Accept).length, 200, 'every connection was accepted');
  t.ok(rig.of(Event.Accept).every((event) => event.listener === id));
  const late = rig.connect(address);
  await rig.next(Event.Reset, late);
  t.ok(clients.every((client) => rig.of(Event.Reset, client).length === 0));
  rig.close();
});

t.test('removing a listener leaves other holders of the socket in service', async (t) => {
  const rig = new Rig();
  const fd = shim.openListenSocket(loopback, listenOptions);
  shim.listen(fd, 128);
  const address = shim.boundAddress(fd);
  const first = rig.transport.addListener(fd, false, 0);
  const second = rig.transport.addListener(fd, false, 0);
  shim.closeDescriptor(fd);
  rig.transport.removeListener(first, false);
  const { server } = await rig.pair(address);
  t.equal(rig.of(Event.Accept, server)[0]!.listener, second);
  rig.close();
});

t.test('one contended socket serves two transports', async (t) => {
  const fd = shim.openListenSocket(unix(`@baton-shim-shared-${process.pid}`), listenOptions);
  shim.listen(fd, 4096);
  const address = shim.boundAddress(fd);
  const rigs = [new Rig(), new Rig()];
  for (const rig of rigs) rig.transport.addListener(fd, true, 0);
  shim.closeDescriptor(fd);
  const client = new Rig();
  for (let i = 0; i < 300; i++) client.connect(address);
  const accepted = () => rigs.map((rig) => rig.of(Event.Accept).length);
  await until(() => accepted().reduce((sum, count) => sum + count, 0) === 300, 'all to be accepted');
  t.ok(
    accepted().every((count) => count > 0),
    `both took part (${accepted().join(', ')})`,
  );
  for (const rig of [...rigs, client]) rig.close();
});

t.test('a listener accepts at most as many connections at a time as it is told', async (t) => {
  const fd = shim.openListenSocket(loopback, listenOptions);
  shim.listen(fd, 128);
  const rig = new Rig();
  const listener = rig.transport.addListener(fd, false, 2);
  rig.transport.setAccepting(listener, false);
  const client = new Rig();
  const address = shim.boundAddress(fd);
  shim.closeDescriptor(fd);
  for (let i = 0; i < 7; i++) client.connect(address);
  await client.next(Event.Connected, undefined, 7);
  rig.transport.setAccepting(listener, true);
  await until(() => rig.of(Event.Accept).length === 7, 'all to be accepted');
  const batches = new Map<number, number>();
  for (const { batch } of rig.of(Event.Accept)) batches.set(batch, (batches.get(batch) ?? 0) + 1);
  t.ok(Math.max(...batches.values()) <= 2, `${[...batches.values()].join(', ')} in a batch`);
  for (const each of [rig, client]) each.close();
});

t.test('many connections at once do not overflow a small batch', async (t) => {
  const rig = new Rig({ maxEvents: 8, receiveBytes: 16 * 1024 });
  const { address } = rig.listen(loopback);
  for (let i = 0; i < 500; i++) rig.sendNow(rig.connect(address), `number ${i}`);
  await until(() => rig.of(Event.Data).length === 500, 'everybody');
  t.equal(new Set(rig.of(Event.Data).map((event) => event.bytes.toString())).size, 500);
  for (const { id } of rig.of(Event.Accept)) rig.submit(Op.Close, id);
  rig.flush();
  await until(() => rig.of(Event.End).length === 500, 'the ends');
  rig.close();
});
