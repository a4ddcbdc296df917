// The bytes forwarded by a proxy between the two codecs, and the number of ranges.

import t from 'tap';
import { StreamBytes } from '../../../src/access-log/stream/stream-bytes.js';
import { headerKey } from '../../../src/common/text/header-names.js';
import { HeadKind } from '../../../src/http/h1/head/head-parser.js';
import { HeadReader } from '../../../src/http/h1/head/head-reader.js';
import { KnownFields } from '../../../src/http/h1/head/known-fields.js';
import { Tail } from '../../../src/http/h1/lines.js';
import { sendRequestHead, sendResponseHead } from '../../../src/http/h1/serializer.js';
import { h1Shared } from '../../../src/http/h1/shared.js';
import { removeHopByHop } from '../../../src/http/headers/edge/hop-by-hop.js';
import { type HeaderBlock, Method } from '../../../src/http/headers/header-block.js';
import { Wire } from './wire.js';

const LIMITS = { maxHeadBytes: 60 * 1024, maxHeaders: 100, acceptHttp10: true };

/** Reads a header section that arrives in `pieces`, changes and sends it: returns the bytes and the number of ranges. */
function pass(kind: HeadKind, pieces: string[], change: (head: HeaderBlock) => void): [text: string, ranges: number] {
  const wire = new Wire();
  const shared = h1Shared(wire.memory);
  const reader = new HeadReader(wire.memory, new KnownFields(wire.memory));
  const head = shared.blocks.take();
  let ranges = 0;
  for (const [index, piece] of pieces.entries()) {
    wire.turn(piece, (offset, length) => {
      const result = reader.read(kind, head, offset, offset + length, LIMITS);
      if (index < pieces.length - 1) return;
      if (result <= 0) throw new Error(`not complete: ${result}`);
      change(head);
      if (kind === HeadKind.Request) sendRequestHead(wire, shared, head, 0, 0, new StreamBytes());
      else sendResponseHead(wire, shared, head, 1, 0, 0, new StreamBytes());
      ranges = wire.sends;
    });
  }
  head.drop();
  return [wire.take(), ranges];
}

const REQUEST = 'GET /a?b HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nAccept:text/html \r\nX-A: 1\r\n\r\n';

t.test('an unchanged header section is one range, byte for byte', (t) => {
  t.same(
    pass(HeadKind.Request, [REQUEST], () => {}),
    [REQUEST, 1],
  );
  t.same(
    pass(HeadKind.Request, [...REQUEST], () => {}),
    [REQUEST, 1],
  );
  const response = 'HTTP/1.1 200 Fine\r\nServer: x\r\n\r\n';
  t.same(
    pass(HeadKind.Response, [response], () => {}),
    [response, 1],
  );
  t.same(
    pass(HeadKind.Response, ['HTTP/1.1 200 Fine\r\n\r\n'], () => {}),
    ['HTTP/1.1 200 Fine\r\n\r\n', 1],
  );
  t.end();
});

t.test('each removal and each run of additions costs one more range', (t) => {
  t.same(
    pass(HeadKind.Request, [REQUEST], (head) => removeHopByHop(head, false)),
    [REQUEST.replace('Connection: keep-alive\r\n', ''), 2],
  );
  const add = (head: HeaderBlock) => {
    head.add(headerKey('X-B'), '2');
    head.add(headerKey('x-c'), '3');
  };
  t.same(pass(HeadKind.Request, [REQUEST], add), [REQUEST.replace(/\r\n$/, 'x-b: 2\r\nx-c: 3\r\n\r\n'), 3]);
  t.end();
});

t.test('additions are the same for a header section that arrived in pieces or was retained', (t) => {
  const expected = REQUEST.replace(/\r\n$/, 'x-b: 2\r\nx-c: 3\r\n\r\n').replace('/a?b', '/new');
  const add = (head: HeaderBlock) => {
    head.add(headerKey('x-b'), '2');
    head.setPath('/new');
    head.add(headerKey('x-c'), '3');
  };
  for (let at = 1; at < REQUEST.length; at++) {
    t.equal(pass(HeadKind.Request, [REQUEST.slice(0, at), REQUEST.slice(at)], add)[0], expected);
  }
  t.equal(
    pass(HeadKind.Request, [REQUEST], (head) => {
      head.retain();
      add(head);
    })[0],
    expected,
  );
  t.end();
});

t.test('content-length is forwarded in canonical form', (t) => {
  const odd = [
    'content-length:12',
    'Content-Length: 12 ',
    'Content-Length:\t12',
    'Content-Length: 12\t',
    'Content-Length:  12',
    'Content-Length: 012',
  ];
  for (const line of odd) {
    for (const first of ['POST /a HTTP/1.1\r\nHost: x\r\n', 'HTTP/1.1 200 OK\r\n']) {
      const kind = first.startsWith('POST') ? HeadKind.Request : HeadKind.Response;
      for (const behind of ['', 'A: b\r\n']) {
        const message = `${first}${line}\r\n${behind}\r\n`;
        const expected = `${first}${behind}content-length: 12\r\n\r\n`;
        t.equal(pass(kind, [message], () => {})[0], expected, line);
        t.equal(pass(kind, [...message], () => {})[0], expected, `${line}, byte by byte`);
      }
    }
  }
  for (const line of ['Content-Length: 12', 'content-length: 0']) {
    const message = `POST /a HTTP/1.1\r\nHost: x\r\n${line}\r\n\r\n`;
    t.same(
      pass(HeadKind.Request, [message], () => {}),
      [message, 1],
      line,
    );
  }
  t.end();
});

t.test("the codec's connection fields follow the last received field", (t) => {
  const wire = new Wire();
  const shared = h1Shared(wire.memory);
  const send = (kind: HeadKind, message: string, minorVersion: number) => {
    const head = shared.blocks.take();
    wire.turn(message, (offset, length) => {
      new HeadReader(wire.memory, shared.known).read(kind, head, offset, offset + length, LIMITS);
      if (kind === HeadKind.Request) sendRequestHead(wire, shared, head, 0, Tail.Close, new StreamBytes());
      else sendResponseHead(wire, shared, head, minorVersion, 0, Tail.Close, new StreamBytes());
    });
    head.drop();
    return wire.take();
  };
  const end = 'connection: close\r\n\r\n';
  t.equal(send(HeadKind.Request, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', 1), `GET / HTTP/1.1\r\nHost: x\r\n${end}`);
  t.equal(send(HeadKind.Response, 'HTTP/1.1 200 Fine\r\nA: b\r\n\r\n', 1), `HTTP/1.1 200 Fine\r\nA: b\r\n${end}`);
  t.equal(send(HeadKind.Response, 'HTTP/1.1 200 Fine\r\nA: b\r\n\r\n', 0), `HTTP/1.0 200 OK\r\nA: b\r\n${end}`);
  t.end();
});

t.test('lines rewritten in a header section that arrived in pieces are retained with it', (t) => {
  const heads = {
    'an http URL': ['GET http://y:1?a HTTP/1.1\r\nHost: x\r\n\r\n', 'GET /?a HTTP/1.1\r\nhost: y:1\r\n\r\n'],
    'an https URL': ['GET https://y?a HTTP/1.1\r\nHost: x\r\n\r\n', 'GET /?a HTTP/1.1\r\nhost: y\r\n\r\n'],
    'a URL with OPTIONS': ['OPTIONS http://y?a HTTP/1.1\r\nHost: x\r\n\r\n', 'OPTIONS /?a HTTP/1.1\r\nhost: y\r\n\r\n'],
    'a non-canonical length': [
      'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 012\r\n\r\n',
      'POST /a HTTP/1.1\r\nHost: x\r\ncontent-length: 12\r\n\r\n',
    ],
  };
  for (const [what, [message, expected]] of Object.entries(heads)) {
    const wire = new Wire();
    const shared = h1Shared(wire.memory);
    const reader = new HeadReader(wire.memory, new KnownFields(wire.memory));
    const head = shared.blocks.take();
    for (const piece of [message!.slice(0, 9), message!.slice(9)]) {
      wire.turn(piece, (offset, length) => {
        reader.read(HeadKind.Request, head, offset, offset + length, LIMITS);
      });
    }
    wire.turn('', () => sendRequestHead(wire, shared, head, 0, 0, new StreamBytes()));
    t.equal(wire.take(), expected, what);
    head.drop();
  }
  t.end();
});

t.test('start lines that cannot be forwarded are rewritten', (t) => {
  const absolute = 'GET http://y:1/a HTTP/1.1\r\nHost: x\r\nA: b\r\n\r\n';
  t.equal(pass(HeadKind.Request, [absolute], () => {})[0], 'GET /a HTTP/1.1\r\nA: b\r\nhost: y:1\r\n\r\n');
  t.equal(pass(HeadKind.Request, [...absolute], () => {})[0], 'GET /a HTTP/1.1\r\nA: b\r\nhost: y:1\r\n\r\n');
  const old = 'POST /a HTTP/1.0\r\nA: b\r\n\r\n';
  t.equal(pass(HeadKind.Request, [old], () => {})[0], 'POST /a HTTP/1.1\r\nA: b\r\n\r\n');
  t.equal(
    pass(HeadKind.Response, ['HTTP/1.0 404 Gone Fishing\r\n\r\n'], () => {})[0],
    'HTTP/1.1 404 Not Found\r\n\r\n',
  );
  t.equal(pass(HeadKind.Response, ['HTTP/1.1 200\r\n\r\n'], () => {})[0], 'HTTP/1.1 200 OK\r\n\r\n');
  const post = 'POST /a HTTP/1.1\r\nHost: x\r\n\r\n';
  t.equal(
    pass(HeadKind.Request, [post], (head) => head.setMethod(Method.Get, 'GET'))[0],
    'GET /a HTTP/1.1\r\nHost: x\r\n\r\n',
  );
  t.equal(
    pass(HeadKind.Response, ['HTTP/1.1 299 X\r\n\r\n'], (head) => head.setStatus(298))[0],
    'HTTP/1.1 298 Unknown\r\n\r\n',
  );
  t.end();
});
