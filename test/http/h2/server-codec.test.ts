// The server codec frame by frame: messages, flow control, faults of clients, floods, and the end of a connection.

import fc from 'fast-check';
import t from 'tap';
import { pieces } from '../h1/wire.js';
import {
  data,
  FrameFlag,
  FrameType,
  frame,
  PREFACE,
  requestList,
  resetFrame,
  settings,
  uint32,
  windowUpdate,
} from './frames.js';
import { ServerPeer } from './server-peer.js';

t.test('a connection begins with the settings of Envoy', (t) => {
  const peer = new ServerPeer({}, true);
  t.same(peer.sent(), ['Settings 1=4096 8=0 3=1024 4=16777216', 'WindowUpdate +25100289']);
  peer.receive(PREFACE, settings([4, 1000]));
  t.same(peer.sent(), ['Settings ack']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('requests and responses with bodies and trailers', (t) => {
  const peer = new ServerPeer();
  peer.receive(peer.frames.request(1, '/a', [['accept', '*/*']]));
  t.same(peer.events(), ['1 GET /a host=a.test accept=*/* end']);
  peer.turn(() =>
    peer.streams[0]!.respond(
      [
        ['content-type', 'text/plain'],
        ['Connection', 'close'],
      ],
      'hello',
    ),
  );
  t.same(peer.sent(), ['Headers 1 :status: 200; content-type: text/plain', 'Data 1 hello end']);
  t.same(peer.events(), ['idle']);
  peer.receive(peer.frames.request(3, '/b', [['content-length', '5']], false), data(3, 'he'), data(3, 'llo'));
  peer.receive(peer.frames.headers(3, [['x-sum', '1']]));
  t.same(peer.events(), ['2 GET /b host=a.test content-length=5', '2 data hello', '2 trailers x-sum=1']);
  peer.turn(() => {
    peer.streams[1]!.begin();
    peer.streams[1]!.body('abc');
    peer.streams[1]!.trailers([['grpc-status', '0']]);
  });
  t.same(peer.sent(), ['Headers 3 :status: 200', 'Data 3 abc', 'Headers 3 grpc-status: 0 end']);
  t.equal(peer.count('trailers'), 1);
  t.equal(peer.count('streams_active'), 0);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('a long response head is sent in several frames', (t) => {
  const peer = new ServerPeer();
  peer.receive(peer.frames.request(1));
  const long = '~'.repeat(40_000);
  peer.turn(() => peer.streams[0]!.respond([['x-long', long]]));
  const [first, second, third] = peer.sent();
  t.same([first, second], ['Headers 1 cut end', 'Continuation 1 cut']);
  t.equal(third, `Continuation 1 :status: 200; x-long: ${long}`);
  t.end();
});

t.test('crumbs of cookies are joined, padding and priority are skipped', (t) => {
  const peer = new ServerPeer();
  const block = peer.frames.block([...requestList('/'), ['cookie', 'a=b'], ['x', 'y'], ['cookie', 'c=d']]);
  const payload = Buffer.concat([Buffer.from([3, 0, 0, 0, 0, 9]), block, Buffer.alloc(3)]);
  const flags = FrameFlag.Padded | FrameFlag.Priority | FrameFlag.EndHeaders;
  peer.receive(frame(FrameType.Headers, flags, 1, payload));
  peer.receive(frame(FrameType.Data, FrameFlag.Padded | FrameFlag.EndStream, 1, Buffer.from('\x02ab\0\0')));
  t.same(peer.events(), ['1 GET / host=a.test x=y cookie=a=b; c=d', '1 data ab', '1 end']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('100 Continue and other informational responses precede the response', (t) => {
  const peer = new ServerPeer();
  peer.receive(peer.frames.request(1, '/', [['expect', '100-continue']], false));
  t.same(peer.events(), ['1 GET / host=a.test expect=100-continue (expects)']);
  peer.turn(() => peer.streams[0]!.encoder.sendContinue());
  t.same(peer.sent(), ['Headers 1 :status: 100']);
  peer.receive(data(1, '', true));
  peer.turn(() => peer.streams[0]!.respond([], undefined, 204));
  t.same(peer.sent(), ['Headers 1 :status: 204 end']);
  t.end();
});

t.test('a response that precedes the end of its request asks the client to stop', (t) => {
  const peer = new ServerPeer();
  peer.receive(peer.frames.request(1, '/', [], false));
  peer.turn(() => peer.streams[0]!.respond([], undefined, 404));
  t.same(peer.sent(), ['Headers 1 :status: 404 end', 'RstStream 1 NO_ERROR']);
  // Frames that were on their way.
  peer.receive(data(1, 'abc'), peer.frames.headers(1, [['x', 'y']]), windowUpdate(1, 5), resetFrame(1));
  t.same(peer.sent(), []);
  peer.receive(peer.frames.request(3));
  t.same(peer.events(), ['1 GET / host=a.test', 'idle', '2 GET / host=a.test end']);
  t.end();
});

t.test('the end of a request for a tunnel waits until the tunnel is accepted', (t) => {
  const connect: [string, string][] = [
    [':method', 'CONNECT'],
    [':authority', 'a.test:443'],
  ];
  const peer = new ServerPeer();
  for (const [id, status] of [
    [1, 200],
    [3, 403],
  ] as const) {
    peer.receive(peer.frames.headers(id, connect));
    t.same(peer.events(), [`${(id + 1) / 2} CONNECT a.test:443 host=a.test:443`]);
    peer.turn(() => peer.streams.at(-1)!.begin([], status));
    t.same(peer.events(), status === 200 ? ['1 end'] : []);
    peer.turn(() => peer.streams.at(-1)!.body('bye', true));
    t.same(peer.sent(), [`Headers ${id} :status: ${status}`, `Data ${id} bye end`]);
    t.same(peer.events(), ['idle']);
  }
  t.equal(peer.end(), 0);
  t.end();
});

// ── Flow control ───────────────────────────────────────────────────────────────────────────────────────────────────

t.test('a body is sent as the windows of stream and connection allow', (t) => {
  const peer = new ServerPeer();
  peer.receive(settings([4, 10]), peer.frames.request(1), peer.frames.request(3));
  peer.sent();
  peer.events();
  peer.turn(() => peer.streams[0]!.respond([], 'abcdefghijklmno'));
  t.same(peer.sent(), ['Headers 1 :status: 200', 'Data 1 abcdefghij']);
  peer.receive(windowUpdate(1, 2));
  t.same(peer.sent(), ['Data 1 kl']);
  peer.receive(windowUpdate(1, 2), windowUpdate(1, 100));
  t.same(peer.sent(), ['Data 1 mn', 'Data 1 o end']);
  // A window that the client makes negative.
  peer.turn(() => {
    peer.streams[1]!.begin();
    peer.streams[1]!.body('12345678');
  });
  peer.receive(settings([4, 5]));
  peer.turn(() => peer.streams[1]!.body('9'));
  peer.receive(windowUpdate(3, 3));
  t.same(peer.sent(), ['Headers 3 :status: 200', 'Data 3 12345678', 'Settings ack']);
  t.same(peer.events(), ['2 blocked']);
  peer.receive(windowUpdate(3, 1));
  t.same(peer.sent(), ['Data 3 9']);
  t.same(peer.events(), ['2 drained']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('streams without a window wait aside until they get one', (t) => {
  const peer = new ServerPeer();
  const ids = Array.from({ length: 300 }, (_, i) => 1 + 2 * i);
  peer.receive(settings([4, 0]), ...ids.map((id) => peer.frames.request(id)));
  peer.turn(() => {
    for (const stream of peer.streams) stream.respond([], 'abc');
  });
  peer.sent();
  peer.receive(windowUpdate(0, 1), windowUpdate(301, 1), windowUpdate(599, 9), windowUpdate(1, 2));
  t.same(peer.sent(), ['Data 301 a', 'Data 599 abc end', 'Data 1 ab'], 'each gets its own window');
  peer.receive(resetFrame(303), settings([4, 2]));
  const sent = peer.sent();
  t.equal(sent.filter((line) => /^Data \d+ ab$/.test(line)).length, 296, 'a larger initial window reaches all others');
  t.same(
    sent.filter((line) => line.endsWith('end')),
    ['Data 1 c end', 'Data 301 bc end'],
  );
  peer.receive(settings([4, 0]), windowUpdate(5, 2), settings([4, 1]));
  t.same(peer.sent(), ['Settings ack', 'Settings ack', 'Data 5 c end'], 'negative windows count');
  t.equal(peer.end(), 0);
  t.end();
});
t.test('streams share the window of the connection frame by frame', (t) => {
  const peer = new ServerPeer();
  peer.receive(settings([4, 1_000_000]), peer.frames.request(1), peer.frames.request(3));
  peer.sent();
  const body = 'x'.repeat(60_000);
  peer.turn(() => {
    for (const stream of peer.streams) stream.respond([], body);
  });
  const length = (lines: string[]) =>
    lines.map((line) => /Data (\d) (\d+)/.exec(line)).filter((match) => match !== null);
  const first = length(peer.sent());
  t.equal(
    first.reduce((sum, match) => sum + Number(match[2]), 0),
    65_535,
    'not more than the window',
  );
  peer.receive(windowUpdate(0, 100_000));
  const rest = length(peer.sent());
  t.equal(
    [...first, ...rest].reduce((sum, match) => sum + Number(match[2]), 0),
    120_000,
    'everything',
  );
  t.equal(peer.end(), 0);
  t.end();
});

t.test('trailers wait behind queued bytes', (t) => {
  const peer = new ServerPeer();
  peer.receive(settings([4, 2]), peer.frames.request(1));
  peer.sent();
  peer.turn(() => {
    peer.streams[0]!.begin();
    peer.streams[0]!.body('abc');
    peer.streams[0]!.trailers([['x', 'y']]);
  });
  t.same(peer.sent(), ['Headers 1 :status: 200', 'Data 1 ab']);
  peer.receive(windowUpdate(1, 1));
  t.same(peer.sent(), ['Data 1 c', 'Headers 1 x: y end']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('nothing is sent to a blocked connection except headers, and streams are told', (t) => {
  const peer = new ServerPeer();
  peer.receive(peer.frames.request(1), peer.frames.request(3));
  peer.turn(() => peer.streams[0]!.begin());
  peer.turn(() => peer.codec.blocked());
  peer.turn(() => peer.streams[0]!.body('abc'));
  peer.turn(() => peer.streams[1]!.begin());
  peer.sent();
  t.same(peer.events().slice(2), ['1 blocked', '2 blocked']);
  peer.turn(() => peer.codec.drained());
  t.same(peer.sent(), ['Data 1 abc']);
  t.same(peer.events(), ['1 drained', '2 drained']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('consumed bytes are returned to the windows in halves', (t) => {
  const peer = new ServerPeer({ streamWindow: 100_000, connectionWindow: 150_000 });
  peer.receive(peer.frames.request(1, '/', [], false));
  for (let i = 0; i < 5; i++) peer.receive(data(1, 'x'.repeat(16_000)));
  t.same(peer.sent(), ['WindowUpdate 1 +64000', 'WindowUpdate +80000']);
  t.end();
});

t.test('a paused stream holds back its window, other streams continue', (t) => {
  const peer = new ServerPeer({ streamWindow: 65_535, connectionWindow: 200_000 });
  peer.onRequest = (stream) => {
    if (peer.streams.length === 1) stream.encoder.pauseReading();
  };
  peer.receive(peer.frames.request(1, '/', [], false), peer.frames.request(3, '/', [], false));
  for (let i = 0; i < 4; i++) peer.receive(data(1, `${i}`.repeat(16_000)));
  peer.receive(data(3, 'hello', true));
  t.same(peer.sent(), []);
  t.same(peer.events().slice(2), ['2 data hello', '2 end']);
  peer.receive(data(1, 'end', true));
  peer.turn(() => peer.streams[0]!.encoder.resumeReading());
  const body = peer.events();
  t.equal(body[0]!.length, '1 data '.length + 64_003);
  t.same(body.slice(1), ['1 end']);
  peer.turn(() => peer.streams[0]!.respond());
  t.equal(peer.count('streams_active'), 1);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('trailers wait for a paused stream', (t) => {
  const peer = new ServerPeer();
  peer.receive(peer.frames.request(1, '/', [], false));
  peer.turn(() => peer.streams[0]!.encoder.pauseReading());
  peer.receive(data(1, 'abc'), peer.frames.headers(1, [['x', 'y']]));
  t.same(peer.events(), ['1 GET / host=a.test']);
  peer.turn(() => peer.streams[0]!.encoder.resumeReading());
  t.same(peer.events(), ['1 data abc', '1 trailers x=y']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('more than a window ends the stream or the connection', (t) => {
  const pauseAll = (connectionWindow: number) => {
    const peer = new ServerPeer({ streamWindow: 65_535, connectionWindow });
    peer.onRequest = (stream) => stream.encoder.pauseReading();
    peer.receive(peer.frames.request(1, '/', [], false), peer.frames.request(3, '/', [], false));
    for (let i = 0; i < 4; i++) peer.receive(data(1, 'x'.repeat(16_000)));
    return peer;
  };
  const ofStream = pauseAll(200_000);
  ofStream.receive(data(1, 'x'.repeat(1536)), data(3, 'abc'));
  t.same(ofStream.sent(), ['RstStream 1 FLOW_CONTROL_ERROR']);
  t.equal(ofStream.events().at(-1), '1 reset ProtocolError http2.remote_reset');
  t.equal(ofStream.end(), 0);
  const ofConnection = pauseAll(80_000);
  ofConnection.receive(data(3, 'x'.repeat(16_001)));
  t.same(ofConnection.sent(), ['GoAway last 3 FLOW_CONTROL_ERROR']);
  t.equal(ofConnection.events().at(-1), 'close');
  t.end();
});

// ── Faults of clients ──────────────────────────────────────────────────────────────────────────────────────────────

const VIOLATION = 'http2.violation.of.messaging.rule';
const FIELD = 'http2.invalid.header.field';
const without = (name: string) => requestList('/').filter(([each]) => each !== name);
const with_ = (...more: [string, string][]) => [...requestList('/'), ...more];
const INVALID_REQUESTS: [string, [string, string][], string][] = [
  ['an upper-case name', with_(['X', 'y']), FIELD],
  ['Connection', with_(['connection', 'close']), FIELD],
  ['Transfer-Encoding', with_(['transfer-encoding', 'chunked']), FIELD],
  ['Keep-Alive', with_(['keep-alive', '1']), FIELD],
  ['Proxy-Connection', with_(['proxy-connection', 'close']), FIELD],
  ['Upgrade', with_(['upgrade', 'h2c']), FIELD],
  ['TE other than trailers', with_(['te', 'gzip']), FIELD],
  ['TE with trailers and more', with_(['te', 'trailers, deflate']), FIELD],
  ['two hosts', [...without(':authority'), ['host', 'a'], ['host', 'b']], FIELD],
  ['a second :method', [[':method', 'GET'], ...requestList('/')], FIELD],
  ['a pseudo-header after a field', [...without(':path'), ['x', 'y'], [':path', '/']], FIELD],
  ['an unknown pseudo-header', [[':foo', 'bar'], ...requestList('/')], FIELD],
  [':protocol', [[':protocol', 'websocket'], ...requestList('/')], FIELD],
  ['a response pseudo-header', [[':status', '200'], ...requestList('/')], FIELD],
  ['no :method', without(':method'), VIOLATION],
  ['no :path', without(':path'), VIOLATION],
  ['no :scheme', without(':scheme'), VIOLATION],
  ['neither :authority nor host', without(':authority'), VIOLATION],
  ['an empty :path', requestList(''), FIELD],
  ['a relative :path', requestList('a'), VIOLATION],
  ['a URL as :path', requestList('http://a/'), VIOLATION],
  ['* with GET', requestList('*'), VIOLATION],
  ['a space in :path', requestList('/a b'), FIELD],
  ['a control character in :path', requestList('/\x01'), FIELD],
  ['userinfo in :authority', [...without(':authority'), [':authority', 'u@a']], FIELD],
  ['a space in :authority', [...without(':authority'), [':authority', 'a b']], FIELD],
  ['an empty :authority', [...without(':authority'), [':authority', '']], FIELD],
  ['a space in :method', requestList('/', 'G T'), FIELD],
  ['an empty :method', requestList('/', ''), FIELD],
  ['an invalid scheme', [...without(':scheme'), [':scheme', 'h t']].toSorted(pseudoFirst) as [string, string][], FIELD],
  ['NUL in a value', with_(['x', 'a\0b']), FIELD],
  ['LF in a value', with_(['x', 'a\nb']), FIELD],
  ['CR in a value', with_(['x', 'a\rb']), FIELD],
  ['another control character in a value', with_(['x', 'a\x01b']), FIELD],
  ['a space in a name', with_(['x y', 'a']), FIELD],
  ['an empty name', with_(['', 'a']), FIELD],
  ['a colon in a name', with_(['x:y', 'a']), FIELD],
  ['a content-length that is not a number', with_(['content-length', '+1']), FIELD],
  ['two content-lengths', with_(['content-length', '0'], ['content-length', '0']), FIELD],
  ['a content-length without body', with_(['content-length', '1']), VIOLATION],
  ['CONNECT with a path', requestList('/', 'CONNECT'), VIOLATION],
];

function pseudoFirst([one]: string[], [other]: string[]): number {
  return Number(other!.startsWith(':')) - Number(one!.startsWith(':'));
}

/** A block as the encoder would not write it: each field is a literal. */
function literals(list: readonly (readonly [string, string])[]): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value, 'latin1')]);
  return Buffer.concat(list.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

t.test('an invalid request ends its connection, as in Envoy, or its stream', (t) => {
  for (const [name, list, detail] of INVALID_REQUESTS) {
    const request = (stream: number) => frame(FrameType.Headers, 5, stream, literals(list));
    const strict = new ServerPeer();
    strict.receive(request(1));
    t.same(strict.sent(), ['GoAway last 1 PROTOCOL_ERROR'], name);
    t.same(strict.events(), [`1 reset ProtocolError ${detail}`, 'close'], name);
    t.equal(strict.count('rx_messaging_error'), 1, name);
    const lenient = new ServerPeer({ keepsConnectionOnInvalidMessage: true });
    lenient.receive(request(1), lenient.frames.request(3));
    t.same(lenient.sent(), ['RstStream 1 PROTOCOL_ERROR'], name);
    t.same(lenient.events(), [`1 reset ProtocolError ${detail}`, 'idle', '2 GET / host=a.test end'], name);
    t.equal(strict.end() + lenient.end(), 0, name);
  }
  t.end();
});

t.test('valid requests that look unusual are served', (t) => {
  const requests: [[string, string][], string][] = [
    [[...without(':authority'), ['host', 'b']], 'GET / host=b'],
    [with_(['host', 'b']), 'GET / host=a.test'],
    [with_(['te', 'Trailers']), 'GET / host=a.test te=Trailers'],
    [with_(['x', ' a\t']), 'GET / host=a.test x=a'],
    [with_(['x', '']), 'GET / host=a.test x='],
    [with_(['x', 'a\xff']), 'GET / host=a.test x=a\xff'],
    [requestList('*', 'OPTIONS'), 'OPTIONS * host=a.test'],
    [requestList('/', 'FOO'), 'FOO / host=a.test'],
  ];
  for (const [list, expected] of requests) {
    const peer = new ServerPeer();
    peer.receive(frame(FrameType.Headers, 5, 1, literals(list)));
    t.same(peer.events(), [`1 ${expected} end`]);
    t.equal(peer.end(), 0);
  }
  t.end();
});

t.test('a path that hosts decode in different ways is refused, and the connection continues', (t) => {
  const peer = new ServerPeer();
  peer.receive(peer.frames.request(1, '/a#b'), peer.frames.request(3, '/\xff'), peer.frames.request(5));
  t.same(peer.events(), [
    '1 invalid 400 path_normalization_failed',
    'idle',
    '2 invalid 400 path_normalization_failed',
    'idle',
    '3 GET / host=a.test end',
  ]);
  t.end();
});

t.test('names with underscores are rejected or dropped as configured', (t) => {
  const strict = new ServerPeer({ underscores: 'REJECT_REQUEST' });
  strict.receive(strict.frames.request(1, '/', [['x_y', '1']]), strict.frames.request(3));
  t.same(strict.sent(), ['RstStream 1 INTERNAL_ERROR']);
  t.same(strict.events(), ['1 reset ProtocolError http2.unexpected_underscore', 'idle', '2 GET / host=a.test end']);
  t.equal(strict.count('requests_rejected_with_underscores_in_headers'), 1);
  const lenient = new ServerPeer({ underscores: 'DROP_HEADER' });
  lenient.receive(
    lenient.frames.request(1, '/', [
      ['x_y', '1'],
      ['x', '2'],
    ]),
  );
  t.same(lenient.events(), ['1 GET / host=a.test x=2 end']);
  t.equal(lenient.count('dropped_headers_with_underscores'), 1);
  t.end();
});

t.test('a request with too many fields or bytes is reset, and the table stays in step', (t) => {
  const peer = new ServerPeer({ maxHeaders: 6, maxHeadBytes: 1000 });
  peer.receive(
    peer.frames.request(1, '/', [
      ['a', '1'],
      ['b', '2'],
      ['c', '3'],
    ]),
  );
  peer.receive(peer.frames.request(3, '/', [['large', 'x'.repeat(990)]]));
  t.same(peer.sent(), ['RstStream 1 INTERNAL_ERROR', 'RstStream 3 INTERNAL_ERROR']);
  t.same(
    peer.events().filter((event) => event !== 'idle'),
    ['1 reset ProtocolError http2.too_many_headers', '2 reset ProtocolError http2.header_list_size_too_large'],
  );
  t.equal(peer.count('header_overflow'), 1);
  t.equal(peer.count('header_list_size_too_large'), 1);
  peer.receive(
    peer.frames.request(5, '/', [
      ['c', '3'],
      ['b', '2'],
    ]),
  );
  t.same(peer.events(), ['3 GET / host=a.test c=3 b=2 end']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('a header bomb is stopped by its decoded size', (t) => {
  const peer = new ServerPeer();
  // Two entries: :authority, and a field of 3,900 bytes.
  const first = Buffer.from(`\x82\x86\x84\x41\x06a.test\x40\x04bomb\x7f\xbd\x1d${'x'.repeat(3900)}`, 'latin1');
  peer.receive(frame(FrameType.Headers, 5, 1, first));
  t.match(peer.events(), [/^1 GET/]);
  // References of one byte each: 62 MB.
  const bomb = Buffer.concat([Buffer.from([0x82, 0x86, 0x84, 0xbf]), Buffer.alloc(16_000, 0xbe)]);
  peer.receive(frame(FrameType.Headers, 5, 3, bomb));
  t.same(peer.events(), ['2 reset ProtocolError http2.header_list_size_too_large']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('a body that is not as long as its content-length resets the stream', (t) => {
  for (const parts of [['abc'], ['abcde', 'f'], ['ab', 'cdefg']]) {
    const peer = new ServerPeer();
    peer.receive(peer.frames.request(1, '/', [['content-length', '5']], false));
    peer.receive(...parts.map((part, index) => data(1, part, index === parts.length - 1)));
    t.same(peer.sent(), ['RstStream 1 PROTOCOL_ERROR'], parts.join());
    t.equal(peer.events().at(-2), '1 reset ProtocolError http2.remote_reset');
  }
  const peer = new ServerPeer();
  peer.receive(peer.frames.request(1, '/', [['content-length', '5']], false), data(1, 'abc'));
  peer.receive(peer.frames.headers(1, [['x', 'y']]));
  t.same(peer.sent(), ['RstStream 1 PROTOCOL_ERROR'], 'trailers');
  t.end();
});

t.test('invalid trailers end the connection', (t) => {
  for (const [trailers, endStream] of [
    [[[':path', '/']], true],
    [[['connection', 'close']], true],
    [[['x', 'y']], false],
  ] as [[string, string][], boolean][]) {
    const peer = new ServerPeer();
    peer.receive(peer.frames.request(1, '/', [], false));
    peer.receive(frame(FrameType.Headers, endStream ? 5 : 4, 1, literals(trailers)));
    t.same(peer.sent(), ['GoAway last 1 PROTOCOL_ERROR']);
    t.same(peer.events().at(-1), 'close');
  }
  t.end();
});

const CONNECTION_FAULTS: [string, Buffer[], string][] = [
  ['DATA on stream 0', [data(0, 'a')], 'PROTOCOL_ERROR'],
  ['DATA of an idle stream', [data(1, 'a')], 'PROTOCOL_ERROR'],
  ['WINDOW_UPDATE of an idle stream', [windowUpdate(1, 1)], 'PROTOCOL_ERROR'],
  ['RST_STREAM of an idle stream', [resetFrame(1)], 'PROTOCOL_ERROR'],
  ['HEADERS on stream 0', [frame(1, 5, 0)], 'PROTOCOL_ERROR'],
  ['HEADERS of an even stream', [frame(1, 5, 2)], 'PROTOCOL_ERROR'],
  ['CONTINUATION without HEADERS', [frame(9, 4, 1)], 'PROTOCOL_ERROR'],
  [
    'another frame within a header section',
    [frame(1, 1, 1, Buffer.from([0x82])), frame(6, 0, 0, Buffer.alloc(8))],
    'PROTOCOL_ERROR',
  ],
  ['another stream within a header section', [frame(1, 1, 1, Buffer.from([0x82])), frame(9, 4, 3)], 'PROTOCOL_ERROR'],
  ['PUSH_PROMISE', [frame(5, 4, 1, uint32(2))], 'PROTOCOL_ERROR'],
  ['PING of 7 bytes', [frame(6, 0, 0, Buffer.alloc(7))], 'FRAME_SIZE_ERROR'],
  ['PING of a stream', [frame(6, 0, 1, Buffer.alloc(8))], 'PROTOCOL_ERROR'],
  ['SETTINGS of a stream', [frame(4, 0, 1)], 'PROTOCOL_ERROR'],
  ['SETTINGS of 5 bytes', [frame(4, 0, 0, Buffer.alloc(5))], 'FRAME_SIZE_ERROR'],
  ['an acknowledgement with settings', [frame(4, 1, 0, Buffer.alloc(6))], 'FRAME_SIZE_ERROR'],
  ['ENABLE_PUSH 2', [settings([2, 2])], 'PROTOCOL_ERROR'],
  ['a window above 2^31-1', [settings([4, 0x80000000])], 'FLOW_CONTROL_ERROR'],
  ['a frame size below 16,384', [settings([5, 16_383])], 'PROTOCOL_ERROR'],
  ['a frame size above 2^24-1', [settings([5, 0x1000000])], 'PROTOCOL_ERROR'],
  ['WINDOW_UPDATE of 0', [windowUpdate(0, 0)], 'PROTOCOL_ERROR'],
  ['WINDOW_UPDATE beyond 2^31-1', [windowUpdate(0, 0x7fffffff)], 'FLOW_CONTROL_ERROR'],
  ['WINDOW_UPDATE of 3 bytes', [frame(8, 0, 0, Buffer.alloc(3))], 'FRAME_SIZE_ERROR'],
  ['RST_STREAM of 3 bytes', [frame(3, 0, 1, Buffer.alloc(3))], 'FRAME_SIZE_ERROR'],
  ['PRIORITY of 4 bytes', [frame(2, 0, 1, Buffer.alloc(4))], 'FRAME_SIZE_ERROR'],
  ['PRIORITY on itself', [frame(2, 0, 1, Buffer.from([0, 0, 0, 1, 1]))], 'PROTOCOL_ERROR'],
  ['GOAWAY of 7 bytes', [frame(7, 0, 0, Buffer.alloc(7))], 'FRAME_SIZE_ERROR'],
  ['a frame of 16,385 bytes', [frame(77, 0, 0, Buffer.alloc(16_385))], 'FRAME_SIZE_ERROR'],
  ['padding without length', [frame(1, 13, 1)], 'FRAME_SIZE_ERROR'],
  ['padding longer than HEADERS', [frame(1, 13, 1, Buffer.from([5, 0x82]))], 'PROTOCOL_ERROR'],
  ['a block that is no HPACK', [frame(1, 5, 1, Buffer.from([0x80]))], 'COMPRESSION_ERROR'],
];

t.test('these frames end the connection', (t) => {
  for (const [name, frames, code] of CONNECTION_FAULTS) {
    const peer = new ServerPeer();
    peer.receive(...frames);
    t.match(peer.sent(), [new RegExp(`^GoAway last \\d ${code}$`)], name);
    t.equal(peer.events().at(-1), 'close', name);
    t.equal(peer.end(), 0, name);
  }
  const early = new ServerPeer({}, true);
  early.sent();
  early.receive(PREFACE, frame(6, 0, 0, Buffer.alloc(8)));
  t.same(early.sent(), ['GoAway last 0 PROTOCOL_ERROR'], 'a frame before SETTINGS');
  const other = new ServerPeer({}, true);
  other.sent();
  other.receive(Buffer.from('PRI * HTTP/2.0\r\n\r\nXX'));
  t.same(other.sent(), ['GoAway last 0 PROTOCOL_ERROR'], 'another preface');
  t.end();
});

t.test('frames of closed streams are errors, unless this side has reset the stream', (t) => {
  const answered = () => {
    const peer = new ServerPeer();
    peer.onRequest = (stream) => stream.respond();
    peer.receive(peer.frames.request(1), peer.frames.request(5));
    peer.sent();
    peer.events();
    return peer;
  };
  const withData = answered();
  withData.receive(data(1, 'a'), windowUpdate(1, 1), resetFrame(1), frame(2, 0, 1, Buffer.from([0, 0, 0, 9, 1])));
  t.same(withData.sent(), ['RstStream 1 STREAM_CLOSED']);
  const withHeaders = answered();
  withHeaders.receive(withHeaders.frames.request(1));
  t.same(withHeaders.sent(), ['GoAway last 5 STREAM_CLOSED']);
  const skipped = answered();
  skipped.receive(skipped.frames.request(3));
  t.same(skipped.sent(), ['GoAway last 5 PROTOCOL_ERROR']);
  const half = new ServerPeer();
  half.receive(half.frames.request(1), half.frames.headers(1, [['x', 'y']]));
  t.same(half.sent(), ['RstStream 1 STREAM_CLOSED']);
  const halfData = new ServerPeer();
  halfData.receive(halfData.frames.request(1), data(1, 'a'));
  t.same(halfData.sent(), ['GoAway last 1 STREAM_CLOSED']);
  t.end();
});

t.test('a client resets one stream, or leaves', (t) => {
  const peer = new ServerPeer();
  peer.receive(peer.frames.request(1), peer.frames.request(3, '/', [], false), resetFrame(1));
  t.same(peer.events().slice(2), ['1 reset RemoteReset http2.remote_reset']);
  t.equal(peer.count('rx_reset'), 1);
  peer.turn(() => peer.streams[0]!.respond([], 'too late'));
  t.same(peer.sent(), []);
  peer.turn(() => peer.codec.end());
  t.same(peer.events(), ['2 reset ConnectionTermination', 'close']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('the next frame may follow in parts', (t) => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 }), (cuts) => {
      const peer = new ServerPeer({}, true);
      const block = Buffer.from(peer.frames.block([...requestList('/split'), ['x', 'y'.repeat(30)]]));
      const all = Buffer.concat([
        PREFACE,
        settings([4, 100]),
        frame(FrameType.Headers, 0, 1, block.subarray(0, 10)),
        frame(FrameType.Continuation, 0, 1, block.subarray(10, 20)),
        frame(FrameType.Continuation, FrameFlag.EndHeaders, 1, block.subarray(20)),
        frame(FrameType.Data, FrameFlag.Padded, 1, Buffer.from('\x03hello\0\0\0')),
        frame(FrameType.Ping, 0, 0, Buffer.from('12345678')),
        peer.frames.headers(1, [['t', 'u']]),
      ]);
      peer.sent();
      for (const part of pieces(all.toString('latin1'), cuts)) peer.receive(Buffer.from(part, 'latin1'));
      t.same(peer.events(), [`1 GET /split host=a.test x=${'y'.repeat(30)}`, '1 data hello', '1 trailers t=u']);
      t.same(peer.sent(), ['Settings ack', 'Ping ack 12345678']);
      return peer.end() === 0;
    }),
    { numRuns: 200 },
  );
  t.end();
});

// ── Limits ─────────────────────────────────────────────────────────────────────────────────────────────────────────

t.test('more streams than allowed are refused', (t) => {
  const peer = new ServerPeer({ maxStreams: 2 });
  peer.receive(peer.frames.request(1), peer.frames.request(3), peer.frames.request(5, '/', [['x', 'y']]));
  t.same(peer.sent(), ['RstStream 5 REFUSED_STREAM']);
  t.equal(peer.count('stream_refused_errors'), 1);
  peer.turn(() => peer.streams[0]!.respond());
  peer.receive(peer.frames.request(7, '/', [['x', 'y']]));
  t.equal(peer.events().at(-1), '3 GET / host=a.test x=y end');
  t.end();
});

const repeat = (count: number, part: Buffer) => Buffer.concat(Array.from({ length: count }, () => part));
const FLOODS: [string, (peer: ServerPeer) => Buffer[], string][] = [
  ['empty DATA', () => [repeat(2, data(1, ''))], 'inbound_empty_frames_flood'],
  [
    'empty CONTINUATION',
    () => [frame(1, 0, 3, Buffer.from([0x82])), repeat(2, frame(9, 0, 3))],
    'inbound_empty_frames_flood',
  ],
  [
    'small CONTINUATION',
    () => [frame(1, 0, 3, Buffer.from([0x82])), repeat(20, frame(9, 0, 3, Buffer.from([0x82])))],
    'inbound_empty_frames_flood',
  ],
  ['PRIORITY', () => [repeat(201, frame(2, 0, 1, Buffer.from([0, 0, 0, 9, 1])))], 'inbound_priority_frames_flood'],
  ['WINDOW_UPDATE', () => [repeat(8, windowUpdate(1, 1))], 'inbound_window_update_frames_flood'],
];

t.test('floods end the connection', (t) => {
  for (const [name, frames, counter] of FLOODS) {
    const peer = new ServerPeer();
    peer.receive(peer.frames.request(1, '/', [], false));
    peer.receive(...frames(peer));
    t.same(peer.sent(), ['GoAway last 1 ENHANCE_YOUR_CALM'], name);
    t.equal(peer.events().at(-1), 'close', name);
    t.equal(peer.count(counter as 'rx_reset'), 1, name);
    t.equal(peer.end(), 0, name);
  }
  t.end();
});

t.test('a client that does not read answers is cut off', (t) => {
  const flood = (peer: ServerPeer, part: Buffer) => {
    peer.wire.pendingBytes = 1000;
    peer.receive(repeat(1001, part));
    return peer.events().at(-1);
  };
  for (const part of [frame(6, 0, 0, Buffer.alloc(8)), settings()]) {
    const peer = new ServerPeer();
    t.equal(flood(peer, part), 'abort');
    t.equal(peer.count('outbound_control_flood'), 1);
    t.equal(peer.end(), 0);
  }
  const patient = new ServerPeer();
  patient.receive(repeat(5000, frame(6, 0, 0, Buffer.alloc(8))));
  t.equal(patient.sent().length, 5000, 'all pings of a client that reads');
  t.end();
});

t.test('a client that opens windows of one byte gets its answer, and at a price', (t) => {
  const peer = new ServerPeer();
  peer.receive(settings([4, 1]), peer.frames.request(1));
  peer.sent();
  peer.turn(() => peer.streams[0]!.respond([], 'abc'));
  peer.receive(windowUpdate(1, 1), windowUpdate(1, 1));
  t.same(peer.sent(), ['Headers 1 :status: 200', 'Data 1 a', 'Data 1 b', 'Data 1 c end']);
  t.end();
});

t.test('a message that the client does not take is given up', (t) => {
  const peer = new ServerPeer({ flushTimeoutMs: 1000 });
  peer.receive(settings([4, 1]), peer.frames.request(1));
  peer.turn(() => peer.streams[0]!.respond([], 'abc'));
  peer.turn(() => peer.codec.check(5000));
  peer.receive(windowUpdate(1, 1));
  peer.turn(() => peer.codec.check(5900));
  peer.turn(() => peer.codec.check(6800));
  t.equal(peer.count('tx_flush_timeout'), 0);
  peer.sent();
  peer.turn(() => peer.codec.check(6900));
  t.same(peer.sent(), ['RstStream 1 CANCEL']);
  t.equal(peer.count('tx_flush_timeout'), 1);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('a silent client is pinged, and cut off without an answer', (t) => {
  const peer = new ServerPeer({ keepaliveIntervalMs: 1000, keepaliveTimeoutMs: 200, keepaliveJitterPercent: 0 });
  t.equal(peer.codec.check(5000), 1000);
  let left = 0;
  peer.turn(() => (left = peer.codec.check(6000)));
  t.equal(left, 200);
  t.match(peer.sent(), [/^Ping \0+$/]);
  peer.receive(frame(6, 1, 0, Buffer.alloc(8)));
  t.equal(peer.codec.check(6100), 900);
  peer.turn(() => peer.codec.check(7000));
  peer.turn(() => peer.codec.check(7200));
  t.same(peer.events(), ['abort']);
  t.equal(peer.count('keepalive_timeout'), 1);
  t.end();
});

// ── The end ────────────────────────────────────────────────────────────────────────────────────────────────────────

t.test('a connection ends in two steps', (t) => {
  const peer = new ServerPeer();
  peer.receive(peer.frames.request(1));
  peer.turn(() => peer.codec.announceClose());
  peer.receive(peer.frames.request(3));
  peer.turn(() => peer.codec.refuseStreams());
  // Not served: the client sends it again elsewhere.
  peer.receive(peer.frames.request(5, '/', [['x', 'y']]));
  t.same(peer.sent(), ['GoAway last 2147483647 NO_ERROR', 'GoAway last 3 NO_ERROR']);
  t.equal(peer.streams.length, 2);
  peer.turn(() => peer.streams[1]!.respond());
  peer.turn(() => peer.streams[0]!.respond());
  t.equal(peer.events().at(-1), 'idle');
  t.equal(peer.count('goaway_sent'), 2);
  t.end();
});

t.test('a late head is refused on its stream', (t) => {
  const peer = new ServerPeer();
  peer.receive(frame(1, 1, 1, Buffer.from([0x82])));
  peer.turn(() => peer.codec.refuseNext({ status: 408, detail: 'request_header_timeout' }));
  t.same(peer.sent(), ['Headers 1 :status: 408 end', 'GoAway last 1 NO_ERROR']);
  t.same(peer.events(), ['1 invalid 408 request_header_timeout', 'idle', 'close']);
  t.equal(peer.end(), 0);
  t.end();
});
