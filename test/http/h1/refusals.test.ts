// Messages that the codecs refuse, as a table: each message is refused with this status and detail, split at any byte, and no
// part of it reaches a stream.

import t from 'tap';
import { ClientPeer, ServerPeer } from './peers.js';
import { newMemory, Wire } from './wire.js';

type Refusal = [what: string, message: string, status: number, detail: string];

const CODEC = 'http1.codec_error';
const BYTES = 'http1.invalid_characters';
const CODING = 'http1.invalid_transfer_encoding';
const URL = 'http1.invalid_url';
const CONNECTION = 'http1.connection_header_rejected';

/** Returns a request with these field lines. */
function request(fields: string, line = 'POST / HTTP/1.1'): string {
  return `${line}\r\nHost: x\r\n${fields}\r\n`;
}
function target(target: string, method = 'GET'): string {
  return request('', `${method} ${target} HTTP/1.1`);
}
function host(value: string): string {
  return `GET / HTTP/1.1\r\nHost: ${value}\r\n\r\n`;
}

const REQUESTS: Refusal[] = [
  // The request line
  ['HTTP/0.9', 'GET /\r\n', 426, 'low_version'],
  ['HTTP/0.9 with its number', request('', 'GET / HTTP/0.9'), 426, 'low_version'],
  ['HTTP/1.2', request('', 'GET / HTTP/1.2'), 426, 'low_version'],
  ['HTTP/2.0', request('', 'GET / HTTP/2.0'), 426, 'low_version'],
  ['HTTP/3.1', request('', 'GET / HTTP/3.1'), 426, 'low_version'],
  ['the HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, CODEC],
  ['a version in lower case', request('', 'GET / http/1.1'), 400, CODEC],
  ['a version of two digits', request('', 'GET / HTTP/1.10'), 400, CODEC],
  ['a version without a dot', request('', 'GET / HTTP/11'), 400, CODEC],
  ['no version', request('', 'GET / '), 400, CODEC],
  ['another protocol', request('', 'GET / ICAP/1.0'), 400, CODEC],
  ['two spaces after the method', request('', 'GET  / HTTP/1.1'), 400, CODEC],
  ['two spaces after the target', request('', 'GET /  HTTP/1.1'), 400, CODEC],
  ['space after the version', request('', 'GET / HTTP/1.1 '), 400, CODEC],
  ['a tab after the method', request('', 'GET\t/ HTTP/1.1'), 400, CODEC],
  ['no method', request('', ' / HTTP/1.1'), 400, CODEC],
  ['an invalid method', request('', 'GE(T / HTTP/1.1'), 400, CODEC],
  ['an unknown method', request('', 'FETCH / HTTP/1.1'), 400, CODEC],
  ['a method in lower case', request('', 'get / HTTP/1.1'), 400, CODEC],
  ['more than a method', request('', 'GETS / HTTP/1.1'), 400, CODEC],
  ['the beginning of a method', request('', 'GE / HTTP/1.1'), 400, CODEC],
  ['bare CR first', `\r${request('')}`, 400, CODEC],
  ['bare CR and another byte first', `\rX${request('')}`, 400, CODEC],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, CODEC],
  ['bare LF after the request line', 'GET / HTTP/1.1\nHost: x\r\n\r\n', 400, CODEC],
  ['bare CR after the request line', 'GET / HTTP/1.1\rHost: x\r\n\r\n', 400, CODEC],

  // Targets
  ['a control in the target', target('/a\x01b'), 400, BYTES],
  ['NUL in the target', target('/a\0b'), 400, BYTES],
  ['DEL in the target', target('/a\x7fb'), 400, BYTES],
  ['a tab in the target', target('/a\tb'), 400, BYTES],
  ['LF in the target', target('/a\nb'), 400, BYTES],
  ['a fragment', target('/a#b'), 400, 'path_normalization_failed'],
  ['a byte above 127 in the path', target('/caf\xe9'), 400, CODEC],
  ['a byte above 127 in the query', target('/?a=\xff'), 400, CODEC],
  ['an escape in the host of a URL', target('http://%61.test/'), 400, URL],
  ['an underscore in the host of a URL', target('http://a_b/'), 400, URL],
  ['an empty port in a URL', target('http://x:/'), 400, URL],
  ['a port above 65535 in a URL', target('http://x:65536/'), 400, URL],
  ['a zone in a URL', target('http://[::1%251]/'), 400, URL],
  ['a path without slash', target('index.html'), 400, CODEC],
  ['* with another method', target('*'), 400, URL],
  ['** with OPTIONS', target('**', 'OPTIONS'), 400, URL],
  ['another scheme', target('ftp://x/'), 400, 'http1.invalid_scheme'],
  ['a scheme without authority', target('http:///a'), 400, URL],
  ['a scheme and nothing', target('http://'), 400, URL],
  ['user information', target('http://user@x/'), 400, URL],
  ['an authority with a bad port', target('http://x:8a/'), 400, URL],
  ['an authority with another method', target('x:80'), 400, CODEC],
  ['CONNECT without port', target('x', 'CONNECT'), 400, URL],
  ['CONNECT with an empty port', target('x:', 'CONNECT'), 400, URL],
  ['CONNECT to a path', target('/a', 'CONNECT'), 400, URL],
  ['CONNECT to a URL', target('http://x:80/', 'CONNECT'), 400, URL],

  // Host.
  ['no Host', 'GET / HTTP/1.1\r\nAccept: x\r\n\r\n', 400, 'missing_host_header'],
  ['no Host with an absolute target', 'GET http://x/ HTTP/1.1\r\n\r\n', 400, 'missing_host_header'],
  ['two Hosts', request('Host: y\r\n'), 400, CODEC],
  ['two equal Hosts', request('Host: x\r\n'), 400, CODEC],
  ['space in Host', host('x y'), 400, 'http.invalid_authority'],
  ['a path in Host', host('x/y'), 400, 'http.invalid_authority'],
  ['user information in Host', host('u@x'), 400, 'http.invalid_authority'],
  ['two ports in Host', host('x:1:2'), 400, 'http.invalid_authority'],
  ['letters in the port of Host', host('x:http'), 400, 'http.invalid_authority'],
  ['a bracket in Host that stays open', host('[::1'), 400, 'http.invalid_authority'],
  ['empty brackets in Host', host('[]:80'), 400, 'http.invalid_authority'],
  ['something between bracket and port of Host', host('[::1]a:80'), 400, 'http.invalid_authority'],
  ['bytes above 127 in Host', host('caf\xe9'), 400, 'http.invalid_authority'],
  ['only a port in Host', host(':80'), 400, 'http.invalid_authority'],

  // Field lines
  ['space before the colon', request('A : b\r\n'), 400, CODEC],
  ['a tab before the colon', request('A\t: b\r\n'), 400, CODEC],
  ['a folded line', request('A: b\r\n c\r\n'), 400, CODEC],
  ['a line folded by a tab', request('A: b\r\n\tc\r\n'), 400, CODEC],
  ['a first line that is folded', 'GET / HTTP/1.1\r\n Host: x\r\n\r\n', 400, CODEC],
  ['an empty name', request(': b\r\n'), 400, CODEC],
  ['a name with a space', request('A B: c\r\n'), 400, CODEC],
  ['a name with NUL', request('A\0: c\r\n'), 400, BYTES],
  ['a name with bytes above 127', request('\xe4: c\r\n'), 400, CODEC],
  ['a name with a slash', request('A/B: c\r\n'), 400, CODEC],
  ['a line without colon', request('Nothing\r\n'), 400, CODEC],
  ['NUL in a value', request('A: b\0c\r\n'), 400, BYTES],
  ['a control in a value', request('A: b\x07c\r\n'), 400, BYTES],
  ['DEL in a value', request('A: b\x7fc\r\n'), 400, BYTES],
  ['bare LF in a value', request('A: b\nc\r\n'), 400, CODEC],
  ['bare CR in a value', request('A: b\rc\r\n'), 400, CODEC],
  ['bare CR at the end of a value', request('A: b\r\r\n'), 400, CODEC],
  ['bare LF at the end of a value', 'GET / HTTP/1.1\r\nHost: x\n\r\n', 400, CODEC],
  ['bare LF as the empty line', 'GET / HTTP/1.1\r\nHost: x\r\n\n', 400, CODEC],
  ['ten names in Connection', request(`Connection: ${'a, '.repeat(9)}close\r\n`), 400, CONNECTION],
  ['ten names in two Connections', request(`${'Connection: a,b,c,d,e\r\n'.repeat(2)}`), 400, CONNECTION],
  ['ten Connections', request('Connection: keep-alive\r\n'.repeat(10)), 400, CONNECTION],
  ['Host in Connection', request('Connection: close, HOST\r\n'), 400, CONNECTION],
  ['x-forwarded-for in Connection', request('Connection: x-a, X-Forwarded-For\r\n'), 400, CONNECTION],
  ['x-forwarded-host in Connection', request('Connection: x-forwarded-host\r\n'), 400, CONNECTION],
  ['x-forwarded-proto in Connection', request('Connection: x-forwarded-proto\r\n'), 400, CONNECTION],
  ['a pseudo-header in Connection', request('Connection: :path\r\n'), 400, CONNECTION],
  ['bare CR as the empty line', 'GET / HTTP/1.1\r\nHost: x\r\n\rGET', 400, CODEC],

  // Framing.
  [
    'Content-Length and Transfer-Encoding',
    request('Content-Length: 3\r\nTransfer-Encoding: chunked\r\n'),
    400,
    'http1.content_length_and_chunked_not_allowed',
  ],
  [
    'Transfer-Encoding and Content-Length',
    request('Transfer-Encoding: chunked\r\nContent-Length: 3\r\n'),
    400,
    'http1.content_length_and_chunked_not_allowed',
  ],
  [
    'Content-Length 0 and Transfer-Encoding',
    request('Content-Length: 0\r\nTransfer-Encoding: chunked\r\n'),
    400,
    'http1.content_length_and_chunked_not_allowed',
  ],
  ['two lengths', request('Content-Length: 3\r\nContent-Length: 4\r\n'), 400, CODEC],
  ['two equal lengths', request('Content-Length: 3\r\nContent-Length: 3\r\n'), 400, CODEC],
  ['a length after one of 0', request('Content-Length: 0\r\nContent-Length: 3\r\n'), 400, CODEC],
  ['a list of lengths', request('Content-Length: 5, 5\r\n'), 400, CODEC],
  ['an empty length', request('Content-Length:\r\n'), 400, CODEC],
  ['a negative length', request('Content-Length: -1\r\n'), 400, CODEC],
  ['a signed length', request('Content-Length: +1\r\n'), 400, CODEC],
  ['a hexadecimal length', request('Content-Length: 0x10\r\n'), 400, CODEC],
  ['a length with a fraction', request('Content-Length: 1.0\r\n'), 400, CODEC],
  ['a length with a space', request('Content-Length: 1 0\r\n'), 400, CODEC],
  ['a length of 2^53', request('Content-Length: 9007199254740992\r\n'), 400, CODEC],
  ['a length of 2^64 + 5', request('Content-Length: 18446744073709551621\r\n'), 400, CODEC],
  ['chunked that is not last', request('Transfer-Encoding: chunked, gzip\r\n'), 400, CODING],
  ['chunked twice', request('Transfer-Encoding: chunked, chunked\r\n'), 400, CODING],
  ['chunked in two fields', request('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n'), 400, CODING],
  ['an empty coding', request('Transfer-Encoding:\r\n'), 400, CODING],
  ['an empty list element', request('Transfer-Encoding: chunked,\r\n'), 400, CODING],
  ['an unknown coding', request('Transfer-Encoding: xchunked\r\n'), 400, CODING],
  ['a coding with a parameter', request('Transfer-Encoding: chunked;q=1\r\n'), 400, CODING],
  ['identity', request('Transfer-Encoding: identity\r\n'), 400, CODING],
  ['gzip before chunked', request('Transfer-Encoding: gzip, chunked\r\n'), 400, CODING],
  ['a quoted coding', request('Transfer-Encoding: "chunked"\r\n'), 400, CODING],
  ['vertical tab before chunked', request('Transfer-Encoding: \x0bchunked\r\n'), 400, BYTES],
  [
    'CONNECT with a body',
    request('Content-Length: 3\r\n', 'CONNECT x:1 HTTP/1.1'),
    400,
    'http1.content_length_not_allowed',
  ],
  [
    'CONNECT with chunks',
    request('Transfer-Encoding: chunked\r\n', 'CONNECT x:1 HTTP/1.1'),
    400,
    'http1.transfer_encoding_not_allowed',
  ],

  // Limits.
  ['101 fields', request('A: b\r\n'.repeat(100)), 431, 'http1.too_many_headers'],
];

t.test('invalid requests are refused', (t) => {
  for (const [what, message, status, detail] of REQUESTS) {
    refuses(t, what, message, () => new ServerPeer(), `invalid ${status} ${detail}`);
  }
  t.end();
});

t.test('HTTP/1.0 with a transfer coding is refused', (t) => {
  const message = 'POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n';
  const makePeer = () => new ServerPeer({ acceptHttp10: true });
  refuses(t, 'chunked', message, makePeer, 'invalid 400 http1.transfer_encoding_not_allowed');
  t.end();
});

t.test('https URLs are refused where the connection is plaintext', (t) => {
  const makePeer = () => new ServerPeer({ refusesHttpsTargets: true });
  for (const url of ['https://x/', 'HTTPS://x:443', 'https://x?a'])
    refuses(t, url, target(url), makePeer, 'invalid 403 http1.https_url_on_plaintext_connection');
  refuses(t, 'a bad https URL', target('https://u@x/'), makePeer, `invalid 400 ${URL}`);
  t.end();
});

t.test('other targets are accepted there', (t) => {
  for (const message of [target('http://x/'), target('*', 'OPTIONS'), target('x:1', 'CONNECT')]) {
    const peer = new ServerPeer({ refusesHttpsTargets: true });
    peer.receive(message);
    t.match(peer.journal.take()[0], /^headers /, message);
    peer.codec.destroy();
  }
  t.end();
});

t.test('an empty method is refused even where any method is allowed', (t) => {
  const makePeer = () => new ServerPeer({ allowsCustomMethods: true });
  refuses(t, 'no method', request('', ' / HTTP/1.1'), makePeer, `invalid 400 ${CODEC}`);
  refuses(t, 'no token', request('', 'GE(T / HTTP/1.1'), makePeer, `invalid 400 ${CODEC}`);
  t.end();
});

t.test('lines of an earlier header section are refused like others', (t) => {
  const memory = newMemory();
  const peerWith = (options: object) => new ServerPeer(options, new Wire(memory));
  const head = (first: string) => `GET / HTTP/1.1\r\n${first}: 5\r\nContent-Length: 3\r\nHost: x\r\n\r\n`;
  const others = head('x-other-length');
  for (let i = 0; i < 2; i++) {
    const peer = peerWith({});
    peer.receive(others);
    t.match(peer.journal.take()[0], /^headers /);
    peer.codec.destroy();
  }
  const refusal = (options: object, message: string) => {
    const peer = peerWith(options);
    peer.receive(message);
    const events = peer.journal.take();
    peer.codec.destroy();
    return events;
  };
  t.same(refusal({}, head('Content-Length')), [`invalid 400 ${CODEC}`, 'close'], 'a second length');
  t.same(refusal({ maxHeaders: 2 }, others), ['invalid 431 http1.too_many_headers', 'close'], 'one line too many');
  t.end();
});

t.test('header sections above the limit are refused at the first excess byte', (t) => {
  const line = 'GET / HTTP/1.1\r\nHost: x\r\nA: ';
  for (const limit of [64, 1000, 1024, 1025, 4096, 60 * 1024]) {
    const fits = `${line}${'a'.repeat(limit - line.length - 4)}\r\n\r\n`;
    for (const piece of [limit, 1024, 1000, limit < 5000 ? 1 : 7919]) {
      const peer = new ServerPeer({ maxHeadBytes: limit });
      feed(peer, fits, piece);
      t.same(peer.journal.take().at(-1), 'end', `${limit} bytes in pieces of ${piece} are accepted`);
      const other = new ServerPeer({ maxHeadBytes: limit });
      feed(other, `${line}a${fits.slice(line.length)}`, piece);
      const refusal = ['invalid 431 http1.headers_too_large', 'close'];
      t.same(other.journal.take(), refusal, `${limit + 1} bytes in pieces of ${piece}`);
      peer.codec.destroy();
      other.codec.destroy();
    }
  }
  t.end();
});

t.test('an endless line is refused at the limit', (t) => {
  for (const start of ['', 'GET /', 'GET / HTTP/1.1\r\n', 'GET / HTTP/1.1\r\nHost: ']) {
    const peer = new ServerPeer({ maxHeadBytes: 5000 });
    feed(peer, start + 'a'.repeat(5000 - start.length), 100);
    t.same(peer.journal.take(), ['invalid 431 http1.headers_too_large', 'close'], start);
    t.match(peer.wire.take(), /^HTTP\/1.1 431 Request Header Fields Too Large\r\n/);
    peer.codec.destroy();
  }
  t.end();
});

/** The end of a chunk, the last chunk and the empty line. */
const BODY_END = '\r\n0\r\n\r\n';

/** Bodies that are invalid before the request is answered. */
const BODIES: [what: string, body: string][] = [
  ['no size', '\r\n'],
  ['a signed size', '+5\r\nhello\r\n'],
  ['a size with 0x', '0x5\r\nhello\r\n'],
  ['space before the size', ' 5\r\nhello\r\n'],
  ['space after the size', '5 \r\nhello\r\n'],
  ['a tab after the size', '5\t;a\r\nhello\r\n'],
  ['bare LF after the size', '5\nhello\r\n'],
  ['bare CR after the size', '5\rhello\r\n'],
  ['17 digits', '00000000000000005\r\nhello\r\n'],
  ['a size of 2^53', '20000000000000\r\nhello'],
  ['a size of 2^64 + 5', '10000000000000005\r\nhello'],
  ['bare LF in an extension', '5;a\nb\r\nhello\r\n'],
  ['bare CR in an extension', '5;a\rb\r\nhello\r\n'],
  ['NUL in an extension', '5;\0\r\nhello\r\n'],
  ['DEL in an extension', '5;\x7f\r\nhello\r\n'],
  ['endless extensions', `5;${'a'.repeat(16385)}\r\nhello\r\n`],
  ['endless extensions in many chunks', `${`1;${'a'.repeat(1000)}\r\nx\r\n`.repeat(17)}0\r\n\r\n`],
  ['data that is longer than its size', '5\r\nhello!\r\n'],
  ['bare LF after the data', '5\r\nhello\n0\r\n\r\n'],
  ['bare CR after the data', '5\r\nhello\r0\r\n\r\n'],
  ['no line end after the data', '5\r\nhello0\r\n\r\n'],
  ...Array.from(BODY_END, (_, at): [string, string] => {
    return [`another byte ${at} at the end`, `5\r\nhello${BODY_END.slice(0, at)} ${BODY_END.slice(at + 1)}`];
  }),
  ['space before the colon of a trailer', '0\r\nA : b\r\n\r\n'],
  ['a folded trailer', '0\r\nA: b\r\n c\r\n\r\n'],
  ['a control in a trailer', '0\r\nA: \x01\r\n\r\n'],
  ['bare LF instead of trailers', '0\r\n\n'],
  ['too many trailers', `0\r\n${'A: b\r\n'.repeat(101)}\r\n`],
  ['endless trailers', `0\r\nA: ${'a'.repeat(61_500)}`],
];

t.test('invalid chunked bodies are refused', (t) => {
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  for (const [what, body] of BODIES) {
    for (const piece of [body.length, body.length < 1000 ? 1 : 997]) {
      const peer = new ServerPeer();
      peer.receive(head);
      feed(peer, body, piece);
      const events = peer.journal.take();
      t.match(events.at(-2), /^invalid 4(00|31) /, what);
      t.equal(events.at(-1), 'close', what);
      t.match(peer.wire.take(), /^HTTP\/1.1 4(00|31) [\s\S]*\r\nconnection: close\r\n/, what);
      t.notOk(events.includes('end'), `${what}: the request does not end`);
      peer.codec.destroy();
      t.equal(peer.wire.memory.retainedBytes(), 0);
    }
  }
  t.end();
});

const RESPONSES: [what: string, message: string][] = [
  ['another protocol', 'ICY 200 OK\r\n\r\n'],
  ['HTTP/2.0', 'HTTP/2.0 200 OK\r\n\r\n'],
  ['HTTP/1.2', 'HTTP/1.2 200 OK\r\n\r\n'],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['a status below 100', 'HTTP/1.1 099 OK\r\n\r\n'],
  ['a status with a letter', 'HTTP/1.1 2o0 OK\r\n\r\n'],
  ['an empty line first', '\r\nHTTP/1.1 200 OK\r\n\r\n'],
  ['a control in the reason', 'HTTP/1.1 200 O\x01K\r\n\r\n'],
  ['bare CR after the status line', 'HTTP/1.1 200 OK\rA: b\r\n\r\n'],
  ['space before the colon', 'HTTP/1.1 200 OK\r\nA : b\r\n\r\n'],
  ['space before the colon, and bare LF', 'HTTP/1.1 200 OK\nA: b\nA : b\n\n'],
  ['a folded first line', 'HTTP/1.1 200 OK\r\n A: b\r\n\r\n'],
  ['a folded first line after bare LF', 'HTTP/1.1 200 OK\n A: b\n\n'],
  ['a colon in a folded line', 'HTTP/1.1 200 OK\r\nA\r\n : b\r\n\r\n'],
  ['a control in a folded line', 'HTTP/1.1 200 OK\r\nA: b\r\n \x01\r\n\r\n'],
  ['bare CR in a folded line', 'HTTP/1.1 200 OK\r\nA: b\r\n c\rd\r\n\r\n'],
  ['bare CR, spaces and LF', 'HTTP/1.1 200 OK\nA: b\r \nC: d\n\n'],
  ['bare CR before the empty line', 'HTTP/1.1 200 OK\nA: b\n\r\r\n\n'],
  ['bare LF and a status of four digits', 'HTTP/1.1  2000 OK\n\n'],
  ['a folded length of two numbers', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n 4\r\n\r\n'],
  ['two lengths, one of them folded', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length:\r\n 4\r\n\r\n'],
  ['length and folded coding', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding:\r\n chunked\r\n\r\n'],
  ['folded codings', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip,\r\n chunked\r\n\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n'],
  ['two equal lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n'],
  ['a negative length', 'HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n'],
  ['length and coding', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['an unknown coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n'],
  ['chunked that is not last', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n'],
  ['a coding in HTTP/1.0', 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['a coding in 204', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['a length in 204', 'HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n'],
  ['a length in 103', 'HTTP/1.1 103 Early Hints\r\nContent-Length: 3\r\n\r\n'],
  ['101 fields', `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(101)}\r\n`],
  ['101 fields after bare LF', `HTTP/1.1 200 OK\n${'A: b\n'.repeat(101)}\n`],
  ['endless folded lines', `HTTP/1.1 200 OK\r\nA: b\r\n${' c\r\n'.repeat(16_000)}`],
  ['an endless header section after bare LF', `HTTP/1.1 200 OK\nA: ${'a'.repeat(61_500)}`],
  ['endless spaces after bare LF', `HTTP/1.1 200 OK\nA: ${' '.repeat(61_500)}`],
  ['an endless header section', `HTTP/1.1 200 OK\r\nA: ${'a'.repeat(61_500)}`],
  ['an endless reason phrase', `HTTP/1.1 200 ${'a'.repeat(61_500)}`],
];

t.test('invalid responses are refused', (t) => {
  for (const [what, message] of RESPONSES) {
    for (const piece of [message.length, message.length < 1000 ? 1 : 997]) {
      const peer = new ClientPeer();
      peer.turn(() => peer.request({ start: 'GET /', fields: [] }, undefined, true));
      feed(peer, message, piece);
      const events = peer.journal.take();
      t.equal(events.length, 2, what);
      t.match(events[0], /^reset protocol /, what);
      t.match(events[1], /^protocol error /, what);
      t.equal(peer.wire.memory.retainedBytes(), 0);
    }
  }
  t.end();
});

function refuses(t: Tap, what: string, message: string, makePeer: () => ServerPeer, event: string): void {
  for (let at = 0; at <= message.length; at++) {
    // A split at 0 means none, one at the end means byte by byte.
    const peer = makePeer();
    if (at === message.length) feed(peer, message, 1);
    else for (const part of at === 0 ? [message] : [message.slice(0, at), message.slice(at)]) peer.receive(part);
    const events = peer.journal.take();
    const status = event.split(' ')[1];
    const answer = peer.wire.take();
    const isAnswered = answer.startsWith(`HTTP/1.1 ${status} `) && answer.includes('\r\nconnection: close\r\n');
    peer.codec.destroy();
    const kept = peer.wire.memory.retainedBytes();
    if (events.join() !== `${event},close` || !isAnswered || kept !== 0) {
      t.same(
        { events, isAnswered, kept },
        { events: [event, 'close'], isAnswered: true, kept: 0 },
        `${what}, split at ${at}`,
      );
      return;
    }
  }
  t.pass(what);
}

function feed(peer: ServerPeer | ClientPeer, text: string, piece: number): void {
  for (let at = 0; at < text.length; at += piece) peer.receive(text.slice(at, at + piece));
}

type Tap = Pick<typeof t, 'same' | 'pass'>;
