// Held bytes are bounded and in order, and when there is no memory for them the stream ends.

import t from 'tap';
import { NO_BLOCK } from '../../../src/io/memory.js';
import { ClientPeer, ServerPeer } from './peers.js';
import { newMemory, Wire } from './wire.js';

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

t.test('thousands of pipelined requests, each answered in a separate turn', (t) => {
  const peer = new ServerPeer();
  const count = 2400;
  peer.receive(GET.repeat(count));
  t.equal(peer.wire.isPaused, true, 'the client is paused meanwhile');
  for (let i = 0; i < count; i++) peer.turn(() => peer.answer({ start: '204', fields: [] }, undefined));
  t.equal(peer.journal.take().filter((event) => event === 'idle').length, count);
  t.equal(peer.wire.take(), 'HTTP/1.1 204 No Content\r\n\r\n'.repeat(count));
  t.equal(peer.wire.isPaused, false);
  t.equal(peer.codec.bufferedBytes, 0);
  t.equal(peer.wire.memory.retainedBytes(), 0);
  t.end();
});

t.test('thousands of pipelined requests that are answered at once need no deeper stack', (t) => {
  const peer = new ServerPeer();
  peer.onRequest = () => peer.answer({ start: '204', fields: [] }, undefined);
  peer.turn(() => peer.codec.blocked());
  peer.receive(GET.repeat(6000));
  peer.turn(() => peer.codec.drained());
  t.equal(peer.wire.take(), 'HTTP/1.1 204 No Content\r\n\r\n'.repeat(6000));
  t.equal(peer.wire.memory.retainedBytes(), 0);
  t.end();
});

t.test('requests answered at once, and pieces of a body, leave turns to other connections', (t) => {
  const wire = new Wire();
  const peer = new ServerPeer({}, wire);
  peer.onRequest = () => peer.answer({ start: '204', fields: [] }, undefined);
  const answered: number[] = [];
  const turns = (text: string, count: () => number): number[] => {
    answered.length = 0;
    wire.turn(text, (offset, length) => peer.codec.receive(offset, length));
    for (let before = 0; ; ) {
      answered.push(count() - before);
      before += answered.at(-1)!;
      if (!wire.takeWait()) return answered;
      wire.turn('', () => peer.codec.takeTurn());
    }
  };
  const most = Math.max(...turns(GET.repeat(1000), () => wire.sent.split('204').length - 1));
  t.equal(wire.take().split('204').length - 1, 1000);
  t.ok(most <= 20, `${most} requests in a turn`);
  let pieces = 0;
  peer.onData = () => {
    pieces++;
  };
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  const chunks = Math.max(...turns(`${head}${'1\r\na\r\n'.repeat(5000)}`, () => pieces));
  t.equal(pieces, 5000);
  t.ok(chunks <= 300, `${chunks} chunks in a turn`);
  peer.codec.destroy();
  t.equal(wire.memory.retainedBytes(), 0);
  t.end();
});

t.test('bytes that arrive while a connection waits for its turn stay after its held bytes', (t) => {
  const wire = new Wire();
  const peer = new ServerPeer({}, wire);
  peer.onRequest = () => peer.answer({ start: '204', fields: [] }, undefined);
  const get = (number: number) => `GET /${number} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const numbers = Array.from({ length: 100 }, (_, index) => index);
  for (const half of [numbers.slice(0, 50), numbers.slice(50)]) {
    wire.turn(half.map(get).join(''), (offset, length) => peer.codec.receive(offset, length));
    t.notOk(peer.codec.isAtRest);
  }
  while (wire.takeWait()) wire.turn('', () => peer.codec.takeTurn());
  const seen = peer.journal.take().filter((event) => event.startsWith('headers'));
  t.same(
    seen,
    numbers.map((number) => `headers GET /${number} host=x`),
  );
  peer.codec.destroy();
  t.end();
});

t.test('a full receive window that arrives while the stream is paused is delivered later, in order', (t) => {
  const peer = new ServerPeer();
  const body = Array.from({ length: 30_000 }, (_, i) => String(i % 10000).padStart(5)).join('');
  peer.receive(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`);
  peer.turn(() => peer.codec.pauseReading());
  t.equal(peer.wire.isPaused, true);
  peer.receive(body);
  t.equal(peer.codec.bufferedBytes, body.length);
  t.equal(peer.journal.take().length, 1);
  peer.turn(() => peer.codec.resumeReading());
  t.same(peer.journal.take(), [`data ${body}`, 'end']);
  t.equal(peer.wire.isPaused, false);
  peer.codec.destroy();
  t.equal(peer.wire.memory.retainedBytes(), 0);
  t.end();
});

t.test('a stream may pause in the middle of held bytes', (t) => {
  const peer = new ServerPeer();
  peer.receive('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
  peer.turn(() => peer.codec.pauseReading());
  peer.receive('1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n');
  peer.journal.take();
  const { onData } = ServerPeer.prototype;
  peer.onData = (offset, length, endStream) => {
    peer.codec.pauseReading();
    onData.call(peer, offset, length, endStream);
  };
  const seen = [];
  for (let i = 0; i < 3; i++) {
    peer.turn(() => peer.codec.resumeReading());
    seen.push(...peer.journal.take());
  }
  t.same(seen, ['data a', 'data b', 'data c', 'end']);
  peer.codec.destroy();
  t.end();
});

t.test('a pause that outlives its request does not block the next one', (t) => {
  const peer = new ServerPeer();
  peer.receive('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc');
  peer.turn(() => peer.codec.pauseReading());
  t.equal(peer.wire.isPaused, true);
  peer.turn(() => peer.answer({ start: '503', fields: [] }, undefined));
  t.equal(peer.wire.isPaused, false);
  peer.codec.destroy();
  t.end();
});

t.test("the server's close after held bytes is reported after them, and the response is complete", (t) => {
  const peer = new ClientPeer();
  peer.turn(() => peer.request({ start: 'GET /', fields: [['host', 'x']] }, undefined, true));
  peer.receive('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc');
  peer.turn(() => peer.codec.pauseReading());
  peer.receive('def');
  peer.turn(() => peer.codec.end());
  t.same(peer.journal.take(), ['headers 200 content-length=6', 'data abc']);
  peer.turn(() => peer.codec.resumeReading());
  t.same(peer.journal.take(), ['data def', 'end', 'used up']);
  t.equal(peer.wire.memory.retainedBytes(), 0);
  t.end();
});

t.test('the close of a client that waits for a response is reported at once, and in a tunnel after held bytes', (t) => {
  const peer = new ServerPeer();
  peer.receive('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n');
  peer.turn(() => peer.codec.pauseReading());
  peer.receive('abc');
  peer.journal.take();
  peer.turn(() => peer.codec.end());
  t.same(peer.journal.take(), ['reset termination', 'close']);
  peer.codec.destroy();
  const tunnel = new ServerPeer();
  tunnel.receive('GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
  tunnel.turn(() => tunnel.begin({ start: '101', fields: [['upgrade', 'websocket']] }));
  tunnel.journal.take();
  tunnel.turn(() => tunnel.codec.pauseReading());
  tunnel.receive('abc');
  tunnel.turn(() => tunnel.codec.end());
  t.same(tunnel.journal.take(), []);
  tunnel.turn(() => tunnel.codec.resumeReading());
  t.same(tunnel.journal.take(), ['data abc', 'end']);
  tunnel.codec.destroy();
  t.end();
});

t.test('header sections that arrive in pieces on several connections at once do not mix', (t) => {
  const memory = newMemory();
  const peers = ['a', 'b', 'c'].map((letter) => ({ letter, peer: new ServerPeer({}, new Wire(memory)) }));
  for (const size of [1, 1000, 2500, 30_000]) {
    for (const piece of [400, 999, 3333]) {
      const heads = peers.map(({ letter }) => `GET / HTTP/1.1\r\nHost: ${letter}\r\nX: ${letter.repeat(size)}\r\n\r\n`);
      const { length } = heads[0]!;
      const step = Math.min(piece, length - 1);
      for (let at = 0; at < length; at += step) {
        for (const [index, { peer }] of peers.entries()) peer.receive(heads[index]!.slice(at, at + step));
      }
      for (const { letter, peer } of peers) {
        const wanted = [`headers GET / host=${letter} x=${letter.repeat(size)}`, 'end'];
        t.same(peer.journal.take(), wanted, `${size} bytes of ${letter} in pieces of ${piece}`);
        peer.turn(() => peer.answer({ start: '204', fields: [] }, undefined));
        peer.journal.take();
      }
    }
  }
  t.equal(memory.retainedBytes(), 0);
  t.end();
});

t.test('with small blocks only, held bytes are complete and in order', (t) => {
  const memory = newMemory();
  const server = new ServerPeer({}, new Wire(memory));
  const client = new ClientPeer({}, new Wire(memory));
  const body = Array.from({ length: 30_000 }, (_, i) => String(i % 10000).padStart(5)).join('');
  server.receive(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`);
  client.turn(() => client.request({ start: 'GET /', fields: [['host', 'x']] }, undefined, true));
  client.receive(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`);
  const small = Array.from({ length: 480 }, () => memory.retain(4096));
  while (memory.retain(4097) !== NO_BLOCK);
  // One block of each chunk stays, so that no chunk is free.
  for (const [index, block] of small.entries()) if (index % 16 > 0) memory.release(block);
  memory.endTurn();
  const retained = memory.retainedBytes();
  for (const peer of [server, client]) {
    peer.journal.take();
    peer.turn(() => peer.codec.pauseReading());
    peer.receive(body);
    t.equal(peer.codec.bufferedBytes, body.length);
    t.same(peer.journal.take(), []);
    peer.turn(() => peer.codec.resumeReading());
    t.same(peer.journal.take().slice(0, 2), [`data ${body}`, 'end']);
  }
  t.equal(memory.retainedBytes(), retained, 'and released');
  server.codec.destroy();
  t.end();
});

t.test(
  'without memory in the arena a header section is answered with 503, and a body and a response are reset',
  (t) => {
    const memory = newMemory();
    const server = new ServerPeer({}, new Wire(memory));
    const second = new ServerPeer({}, new Wire(memory));
    const client = new ClientPeer({}, new Wire(memory));
    second.receive('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n');
    second.turn(() => second.codec.pauseReading());
    client.turn(() => client.request({ start: 'GET /', fields: [] }, undefined, true));
    while (memory.retain(1) !== NO_BLOCK);

    server.receive('GET / HTTP');
    t.same(server.journal.take(), ['invalid 503 overload', 'close']);
    t.match(server.wire.take(), /^HTTP\/1.1 503 Service Unavailable\r\n/);
    second.receive('abc');
    t.same(second.journal.take().slice(1), ['invalid 503 overload', 'close']);
    client.receive('HTTP/1.1 200');
    t.same(client.journal.take(), ['reset protocol 503 overload', 'protocol error overload']);
    t.end();
  },
);
