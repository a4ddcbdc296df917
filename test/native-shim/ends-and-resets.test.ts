// An orderly end is distinguished from a reset, in both directions, and bytes received before either come first.

import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { ConnectStep, Event, Op } from '../../src/io/shim.js';
import { internet, loopback, pattern, portOf, Rig, unix, until } from './harness/harness.js';

const ECONNREFUSED = 111;
const ECONNRESET = 104;
const EPIPE = 32;
const TCP_ESTABLISHED = 1;

t.test("a peer's FIN is an End, after its bytes", async (t) => {
  const rig = new Rig();
  const { port } = rig.listen(loopback);
  connect(port, '127.0.0.1').end('bye');
  const { id } = await rig.next(Event.Accept);
  await rig.next(Event.End, id);
  t.same(
    rig.seen.map((event) => event.kind),
    [Event.Accept, Event.Data, Event.End],
  );
  t.equal(rig.received(id).toString(), 'bye');
  rig.close();
});

t.test("a peer's RST is a Reset with ECONNRESET, after its bytes, without an End", async (t) => {
  const rig = new Rig();
  const { port } = rig.listen(loopback);
  const peer = connect(port, '127.0.0.1');
  const sent = pattern(300_000);
  const { id } = await rig.next(Event.Accept);
  rig.now(Op.Pause, id);
  await new Promise<void>((resolve) => peer.write(sent, () => resolve()));
  rig.now(Op.Resume, id);
  await until(() => rig.received(id).length === sent.length, 'the bytes');
  peer.resetAndDestroy();
  t.equal((await rig.next(Event.Reset, id)).value, ECONNRESET);
  t.ok(rig.received(id).equals(sent));
  t.equal(rig.of(Event.End).length, 0);
  rig.close();
});

t.test('bytes and RST that arrive together are reported in that order', async (t) => {
  const rig = new Rig();
  const { address } = rig.listen(loopback);
  const { client, server } = await rig.pair(address);
  rig.send(client, 'last words');
  rig.submit(Op.Reset, client);
  rig.flush();
  t.equal((await rig.next(Event.Reset, server)).value, ECONNRESET);
  t.equal(rig.received(server).toString(), 'last words');
  t.equal(rig.of(Event.End, server).length, 0);
  rig.close();
});

t.test('a reset that a send detects first is reported after the bytes received before it', async (t) => {
  const rig = new Rig();
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  rig.send(client, 'last words');
  rig.submit(Op.Reset, client);
  rig.send(server, 'too late');
  rig.flush();
  t.ok([EPIPE, ECONNRESET].includes((await rig.next(Event.Reset, server)).value));
  t.same(
    rig.seen.filter(({ id }) => id === server).map(({ kind }) => kind),
    [Event.Accept, Event.Data, Event.Reset],
  );
  t.equal(rig.received(server).toString(), 'last words');
  rig.close();
});

t.test('Close ends in an orderly way, Reset resets', async (t) => {
  const rig = new Rig();
  const { port } = rig.listen(loopback);
  for (const [op, expected] of [
    [Op.Close, 'end'],
    [Op.Reset, 'ECONNRESET'],
  ] as const) {
    const peer = connect(port, '127.0.0.1');
    let outcome = '';
    peer.on('end', () => (outcome ||= 'end'));
    peer.on('error', (error: NodeJS.ErrnoException) => (outcome ||= error.code!));
    peer.resume();
    const { id } = await rig.next(Event.Accept, undefined, op === Op.Close ? 1 : 2);
    rig.now(op, id);
    await until(() => outcome !== '', 'the outcome');
    t.equal(outcome, expected);
    peer.destroy();
  }
  rig.close();
});

t.test('a reset is detected on a paused connection, an End is not reported until Resume', async (t) => {
  const rig = new Rig();
  const { address } = rig.listen(loopback);
  const one = await rig.pair(address);
  rig.now(Op.Pause, one.server);
  rig.sendNow(one.client, 'unread');
  rig.now(Op.Reset, one.client);
  t.equal((await rig.next(Event.Reset, one.server)).value, ECONNRESET);
  t.equal(rig.of(Event.Data, one.server).length, 0);

  const two = await rig.pair(address);
  rig.now(Op.Pause, two.server);
  rig.sendNow(two.client, 'kept');
  rig.now(Op.Shutdown, two.client);
  // The echo of another connection shows that the transport had its chance to report.
  const three = await rig.pair(address);
  rig.sendNow(three.client, 'x');
  await rig.next(Event.Data, three.server);
  t.equal(rig.of(Event.End, two.server).length + rig.of(Event.Data, two.server).length, 0);
  rig.now(Op.Resume, two.server);
  await rig.next(Event.End, two.server);
  t.equal(rig.received(two.server).toString(), 'kept');
  rig.close();
});

t.test('half-close by us: the peer still sends', async (t) => {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.resume();
    socket.on('end', () => socket.end('answer after your end'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const rig = new Rig();
  const id = rig.connect(internet('127.0.0.1', (server.address() as AddressInfo).port));
  await rig.next(Event.Connected, id);
  rig.send(id, 'question');
  rig.submit(Op.Shutdown, id);
  rig.flush();
  await rig.next(Event.End, id);
  t.equal(rig.received(id).toString(), 'answer after your end');
  t.equal(rig.of(Event.Reset, id).length, 0);
  rig.close();
  server.close();
});

t.test('half-close while connecting: the peer gets the FIN after the sent bytes', async (t) => {
  const rig = new Rig();
  const { address } = rig.listen(loopback);
  for (const [index, sent] of ['', 'question'].entries()) {
    const client = rig.connect(address);
    rig.send(client, sent);
    rig.now(Op.Shutdown, client);
    const { id } = await rig.next(Event.Accept, undefined, index + 1);
    await rig.next(Event.End, id);
    t.equal(rig.received(id).toString(), sent);
    rig.sendNow(id, 'answer');
    await rig.next(Event.Data, client);
    t.equal(rig.received(client).toString(), 'answer');
  }
  rig.close();
});

t.test('half-close by the peer: we still send', async (t) => {
  const rig = new Rig();
  const { port } = rig.listen(loopback);
  const peer = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const chunks: Buffer[] = [];
  let ended = false;
  peer.on('data', (chunk) => chunks.push(chunk));
  peer.on('end', () => (ended = true));
  peer.end('all I have');
  const { id } = await rig.next(Event.Accept);
  await rig.next(Event.End, id);
  const sent = pattern(3 << 20);
  rig.send(id, sent);
  rig.submit(Op.Shutdown, id);
  rig.flush();
  await until(() => ended, 'the end');
  t.ok(Buffer.concat(chunks).equals(sent), 'the FIN followed the pending bytes');
  rig.close();
});

t.test('a refused connect is a Reset with its errno and no Connected', async (t) => {
  const rig = new Rig();
  const { id, address } = rig.listen(loopback);
  rig.transport.removeListener(id, false);
  const connection = rig.connect(address);
  t.match(await rig.next(Event.Reset, connection), { value: ECONNREFUSED, offset: ConnectStep.Later });
  t.equal(rig.of(Event.Connected).length, 0);
  rig.now(Op.Close, connection);
  t.equal(rig.transport.counts().connections, 0);
  rig.close();
});

t.test('a connect that cannot start is a Reset with its errno', async (t) => {
  const rig = new Rig();
  const connection = rig.connect(unix(`@baton-shim-nobody-${process.pid}`));
  t.match(await rig.next(Event.Reset, connection), { value: ECONNREFUSED, offset: ConnectStep.Connect });
  rig.now(Op.Close, connection);
  t.equal(rig.transport.counts().connections, 0);
  rig.close();
});

t.test('writing to a closed peer ends in one Reset', async (t) => {
  const rig = new Rig();
  const { port } = rig.listen(loopback);
  const peers: Socket[] = [];
  const peer = connect(port, '127.0.0.1');
  peers.push(peer);
  peer.on('error', () => undefined);
  const { id } = await rig.next(Event.Accept);
  peer.destroy();
  await rig.next(Event.End, id);
  // The first send is answered with an RST, so that a later one fails.
  await until(() => {
    rig.sendNow(id, 'anybody there?');
    return rig.of(Event.Reset, id).length > 0;
  }, 'Reset');
  t.ok([EPIPE, ECONNRESET].includes(rig.of(Event.Reset, id)[0]!.value));
  for (let i = 0; i < 3; i++) rig.sendNow(id, 'still there?');
  const other = await rig.pair(internet('127.0.0.1', port));
  t.ok(other.server > 0);
  t.equal(rig.of(Event.Reset, id).length, 1);
  rig.close();
});

t.test('sending after Shutdown is answered with a Reset of EPIPE, and not silently dropped', async (t) => {
  const rig = new Rig();
  const { address } = rig.listen(loopback);
  const { client } = await rig.pair(address);
  rig.now(Op.Shutdown, client);
  rig.sendNow(client, 'too late');
  t.equal((await rig.next(Event.Reset, client)).value, EPIPE);
  rig.close();
});

t.test('a lost connection sends no FIN after missing bytes', async (t) => {
  const rig = new Rig({ hardLimit: 1 << 20, scratchBytes: 16 << 20 });
  const { address, port } = rig.listen(loopback);
  const { client, server } = await rig.pair(address);
  const state = () => tcpState(port, portOf(rig.transport.localAddress(client)));
  rig.submit(Op.Pause, client);
  rig.send(server, pattern(16 << 20));
  rig.submit(Op.Shutdown, server);
  rig.flush();
  t.equal(state(), TCP_ESTABLISHED);
  await rig.next(Event.Reset, server);
  rig.now(Op.Shutdown, server);
  t.equal(state(), TCP_ESTABLISHED);
  rig.close();
});

/** Returns the kernel's state of a socket of 127.0.0.1, by its port and its peer's. */
function tcpState(local: number, remote: number): number | undefined {
  const name = (port: number) => `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const line = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .find((candidate) => candidate.includes(` ${name(local)} ${name(remote)} `));
  return line === undefined ? undefined : Number.parseInt(line.trim().split(/\s+/)[3]!, 16);
}
