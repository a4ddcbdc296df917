// gRPC calls to hosts: what is sent, how calls end, and hosts that violate the protocol.

import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import type { GrpcService } from '../../src/config/generated/api.js';
import { GrpcCode } from '../../src/grpc/status.js';
import { FrameFlag, FrameType, frame, uint32 } from '../e2e/harness/http2-frames.js';
import { startTcpUpstream, type Teardown, waitFor } from '../e2e/harness/index.js';
import { http2Cluster, OWN_IP, open, startCalls, unary } from './calls.js';

const METHOD = '/service/method';
const GRPC = { ':status': 200, 'content-type': 'application/grpc' };
const MESSAGE = Buffer.from('00000000026869', 'hex');

t.test('a unary call sends its head and its message, and returns the answer', async (t) => {
  const requests: [IncomingHttpHeaders, Buffer][] = [];
  const port = await startServer(t, (stream, headers) => {
    const body: Buffer[] = [];
    stream.on('data', (bytes: Buffer) => body.push(bytes));
    stream.on('end', () => {
      requests.push([headers, Buffer.concat(body)]);
      answer(stream, MESSAGE, { 'grpc-status': '0' });
    });
  });
  const { channel, clusters } = startCalls(t, [http2Cluster('a', port)]);
  const service: GrpcService = {
    timeout: '1.5s',
    initial_metadata: [
      { key: 'X-Tenant', value: 'blue' },
      { key: 'x-home', value: '%ENVIRONMENT(HOME)%' },
      { key: 'x-none', value: '%DOWNSTREAM_LOCAL_PORT%' },
      { key: 'x-percent', value: '100%%' },
    ],
  };
  t.equal(String(await unary(channel('a', service), METHOD, Buffer.from('say'))), 'hi');
  const [headers, body] = requests[0]!;
  t.match(headers, {
    ':method': 'POST',
    ':path': METHOD,
    ':authority': 'a',
    ':scheme': 'http',
    te: 'trailers',
    'content-type': 'application/grpc',
    'grpc-timeout': '1500m',
    'x-tenant': 'blue',
    'x-home': process.env['HOME'],
    'x-none': undefined,
    'x-percent': '100%',
    'x-envoy-internal': 'true',
    'x-forwarded-for': OWN_IP,
    'x-envoy-expected-rq-timeout-ms': '1500',
  });
  t.same(body, Buffer.from('0000000003736179', 'hex'));
  for (const [name, value] of Object.entries({
    upstream_rq_total: 1,
    upstream_rq_200: 1,
    'internal.upstream_rq_200': 1,
    upstream_rq_active: 0,
    upstream_cx_http2_total: 1,
  }))
    t.equal(clusters.value(`cluster.a.${name}`), value, name);

  const own = { envoy_grpc: { cluster_name: 'a', authority: 'other', skip_envoy_headers: true } };
  await unary(channel('a', own), METHOD, Buffer.from('say'));
  t.equal(requests[1]![0][':authority'], 'other');
  t.same([requests[1]![0]['x-envoy-internal'], requests[1]![0]['x-forwarded-for']], [undefined, undefined]);
});

t.test('messages flow in both directions, and the last one may follow the end of the request', async (t) => {
  const port = await startServer(t, (stream) => {
    stream.respond(GRPC, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': 'all%20%C3%BC' }));
    stream.on('data', (bytes) => stream.write(bytes));
    stream.on('end', () => stream.end(MESSAGE));
  });
  const { channel, clusters } = startCalls(t, [http2Cluster('a', port)]);
  const { call, ended, messages, received } = open(channel('a'), METHOD);
  call!.write(Buffer.from('one'));
  await received(1);
  call!.write(Buffer.alloc(100_000, 'x'));
  call!.end();
  await received(3);
  t.same(await ended(), { code: GrpcCode.Ok, details: 'all ü' });
  t.same(
    messages.map(({ length }) => length),
    [3, 100_000, 2],
  );
  t.equal(clusters.value('cluster.a.upstream_rq_active'), 0);
  t.equal(clusters.value('cluster.a.http2.tx_reset'), 0);
});

t.test('a paused call holds its server back, and loses nothing', async (t) => {
  const sent = 100;
  const length = 1024 * 1024;
  let written = 0;
  const port = await startServer(t, (stream) => {
    stream.respond(GRPC, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    const message = Buffer.concat([Buffer.from('0000100000', 'hex'), Buffer.alloc(length, 'x')]);
    const next = () => {
      if (written === sent) return void stream.end();
      written++;
      stream.write(message, next);
    };
    next();
  });
  const { channel } = startCalls(t, [
    http2Cluster('a', port, { http2_protocol_options: { initial_stream_window_size: 65_536 } }),
  ]);
  let received = 0;
  let status: number | undefined;
  const call = channel('a').stream(METHOD, {
    onMessage: (message) => {
      t.equal(message.length, length);
      received++;
      if (received === 3) call!.pause();
    },
    onEnd: ({ code }) => {
      status = code;
    },
  });
  await waitFor(() => received === 3, { what: 'three messages' });
  let before = -1;
  await waitFor(
    () => {
      const isStill = written === before;
      before = written;
      return isStill;
    },
    { what: 'the server to stop' },
  );
  t.ok(written < sent, `${written} messages were written`);
  t.equal(received, 3);
  call!.resume();
  await waitFor(() => status !== undefined, { what: 'the end' });
  t.same([received, status], [sent, GrpcCode.Ok]);
});

for (const endsInOrder of [false, true])
  t.test(`the end of a paused call ${endsInOrder ? 'follows its messages' : 'is reported at once'}`, async (t) => {
    const port = await startServer(t, (stream) => {
      answer(stream, Buffer.concat([MESSAGE, MESSAGE, MESSAGE]), { 'grpc-status': '0' });
    });
    const { channel, clusters } = startCalls(t, [http2Cluster('a', port)]);
    let received = 0;
    let status: number | undefined;
    const call = channel('a').stream(METHOD, {
      endsInOrder,
      onMessage: () => {
        if (++received === 1) call!.pause();
      },
      onEnd: ({ code }) => {
        status = code;
      },
    });
    const isOver = () => received > 0 && clusters.value('cluster.a.upstream_rq_active') === 0;
    await waitFor(isOver, { what: 'the end of the exchange' });
    t.same([received, status], [1, endsInOrder ? undefined : GrpcCode.Ok]);
    call!.resume();
    t.same([received, status], [endsInOrder ? 3 : 1, GrpcCode.Ok]);
  });

t.test('a server that does not read is sent no more than its window, and the rest is queued', async (t) => {
  let stream: ServerHttp2Stream | undefined;
  const port = await startServer(t, (each) => {
    stream = each;
  });
  const { channel } = startCalls(t, [http2Cluster('a', port)]);
  let drained = 0;
  const call = channel('a').stream(METHOD, {
    onMessage: () => {},
    onDrained: () => drained++,
    onEnd: () => {},
  });
  for (let count = 0; count < 20; count++) call!.write(Buffer.alloc(100_000));
  await waitFor(() => stream !== undefined && drained === 0 && call!.queuedBytes < 2_000_000, { what: 'a window' });
  t.ok(call!.queuedBytes > 1_500_000, `${call!.queuedBytes} bytes`);
  t.ok(call!.queuedParts > 15);
  stream!.resume();
  await waitFor(() => drained > 0 && call!.queuedBytes === 0, { what: 'all to be sent' });
  call!.cancel();
  await waitFor(() => stream!.closed, { what: 'the cancellation' });
});

/** How a server ends a call, and the status. */
const ENDS: readonly [what: string, end: (stream: ServerHttp2Stream) => void, code: number, messages: number][] = [
  ['after a message, without a status', (stream) => answer(stream, MESSAGE), GrpcCode.Unknown, 1],
  ['within a message', (stream) => answer(stream, MESSAGE.subarray(0, 3)), GrpcCode.Unknown, 0],
  ['with an HTML page', (stream) => answer(stream, '<html>hello</html>'), GrpcCode.Internal, 0],
  ['with a status that gRPC does not define', (stream) => answer(stream, '', { 'grpc-status': '99' }), 99, 0],
  ['with a status that is not a number', (stream) => answer(stream, '', { 'grpc-status': 'x' }), GrpcCode.Unknown, 0],
  ['after messages', (stream) => answer(stream, twice(MESSAGE), { 'grpc-status': '0' }), GrpcCode.Ok, 2],
  ['with an error', (stream) => answer(stream, MESSAGE, { 'grpc-status': '7' }), 7, 1],
  ['with an error in its head', (stream) => stream.respond({ ...GRPC, 'grpc-status': '5' }, { endStream: true }), 5, 0],
  ['with HTTP status 403', (stream) => stream.respond({ ':status': 403 }, { endStream: true }), 7, 0],
  ['with HTTP status 503 and a body', (stream) => body(stream, 503), GrpcCode.Unavailable, 0],
  [
    'with HTTP status 503 and a status of gRPC',
    (stream) => stream.respond({ ':status': 503, 'grpc-status': '8' }, { endStream: true }),
    8,
    0,
  ],
  ['with a reset', (stream) => stream.close(2), GrpcCode.Internal, 0],
  ['with a refusal', (stream) => stream.close(7), GrpcCode.Unavailable, 0],
  ['with its connection', (stream) => stream.session!.destroy(), GrpcCode.Unavailable, 0],
];

for (const [what, end, code, messages] of ENDS) {
  t.test(`a call ends when its server ends it ${what}`, async (t) => {
    const { channel, clusters } = startCalls(t, [http2Cluster('a', await startServer(t, end))]);
    const call = open(channel('a'), METHOD);
    t.match(await call.ended(), { code });
    t.equal(call.messages.length, messages);
    t.equal(clusters.value('cluster.a.upstream_rq_active'), 0);
    call.call?.write(Buffer.from('too late'));
  });
}

for (const encoding of [undefined, 'identity', 'gzip']) {
  t.test(`a message that is marked as compressed ends its call with a reason: grpc-encoding ${encoding}`, async (t) => {
    const port = await startServer(t, (stream) => {
      stream.respond(encoding === undefined ? GRPC : { ...GRPC, 'grpc-encoding': encoding });
      stream.write(Buffer.from('01000000026869', 'hex'));
    });
    const { channel } = startCalls(t, [http2Cluster('a', port)]);
    const reason = { code: GrpcCode.Internal, details: /^a message is marked as compressed, .*turn it off/ };
    t.match(await open(channel('a'), METHOD).ended(), reason);
    await t.rejects(unary(channel('a'), METHOD, new Uint8Array(0)), reason);
  });
}

t.test('a unary call fails without an answer, and with several', async (t) => {
  for (const messages of [Buffer.alloc(0), twice(MESSAGE)]) {
    const port = await startServer(t, (stream) => answer(stream, messages, { 'grpc-status': '0' }));
    const { channel } = startCalls(t, [http2Cluster('a', port)]);
    await t.rejects(unary(channel('a'), METHOD, new Uint8Array(0)), { code: GrpcCode.Internal });
  }
});

t.test('a message beyond the limit of the service ends the call', async (t) => {
  const port = await startServer(t, (stream) => {
    stream.respond(GRPC);
    stream.write(Buffer.from('0000000400', 'hex'));
  });
  const { channel } = startCalls(t, [http2Cluster('a', port)]);
  const service = { envoy_grpc: { cluster_name: 'a', max_receive_message_length: 1000 } };
  t.match(await open(channel('a', service), METHOD).ended(), { code: GrpcCode.ResourceExhausted });
});

t.test('an unanswered call ends with the timeout of its service, or else with its own', async (t) => {
  const port = await startServer(t, () => {});
  const { channel, clusters } = startCalls(t, [http2Cluster('a', port)]);
  const late = { code: GrpcCode.DeadlineExceeded };
  await t.rejects(unary(channel('a', { timeout: '0.05s' }), METHOD, new Uint8Array(0), 600_000), late);
  await t.rejects(unary(channel('a'), METHOD, new Uint8Array(0), 50), late);
  t.equal(clusters.value('cluster.a.upstream_rq_timeout'), 2);
  t.equal(clusters.value('cluster.a.upstream_rq_504'), 2);
});

t.test('unanswered pings end a connection and its calls', async (t) => {
  const server = await startTcpUpstream(t, (socket) => {
    // SETTINGS, and nothing afterwards.
    socket.write(frame(FrameType.Settings, 0, 0));
  });
  const connection_keepalive = { interval: '0.05s', timeout: '0.05s' };
  const { channel } = startCalls(t, [
    http2Cluster('a', server.port, { http2_protocol_options: { connection_keepalive } }),
  ]);
  t.match(await open(channel('a'), METHOD).ended(), { code: GrpcCode.Unavailable, details: /ping_timeout/ });
});

t.test('answered pings keep a connection open, also without calls', async (t) => {
  let pings = 0;
  let sessions = 0;
  const server = createServer();
  t.teardown(() => server.close());
  server.on('session', (session) => {
    sessions++;
    session.on('ping', () => pings++);
  });
  server.on('stream', (stream) => answer(stream, MESSAGE, { 'grpc-status': '0' }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const connection_keepalive = { interval: '0.01s', timeout: '15s' };
  const { channel } = startCalls(t, [
    http2Cluster('a', (server.address() as AddressInfo).port, { http2_protocol_options: { connection_keepalive } }),
  ]);
  await unary(channel('a'), METHOD, MESSAGE);
  await waitFor(() => pings >= 5, { what: 'five pings' });
  t.equal(sessions, 1);
});

const SETTINGS = Buffer.concat([frame(FrameType.Settings, 0, 0), frame(FrameType.Settings, FrameFlag.Ack, 0)]);
const HEADERS = (flags: number, block: string) => frame(FrameType.Headers, flags, 1, Buffer.from(block, 'hex'));
/** `:status: 200` and `:status: 103`, in HPACK without Huffman coding. */
const STATUS_200 = '88';
const STATUS_103 = '0803313033';
const repeated = (count: number, bytes: Buffer) => Buffer.concat(Array.from({ length: count }, () => bytes));

/** Servers that violate the protocol, by what they send after the call. */
const HOSTILE: { readonly [what: string]: Buffer } = {
  'sends informational responses without end': repeated(1000, HEADERS(FrameFlag.EndHeaders, STATUS_103)),
  'sends a head without end': Buffer.concat([
    HEADERS(0, STATUS_200),
    repeated(2000, frame(FrameType.Continuation, 0, 1, Buffer.from('0001610162'.repeat(100), 'hex'))),
  ]),
  'sends trailers without end': Buffer.concat([
    HEADERS(FrameFlag.EndHeaders, STATUS_200),
    HEADERS(FrameFlag.EndStream, '0001610162'),
    repeated(2000, frame(FrameType.Continuation, 0, 1, Buffer.from('0001610162'.repeat(100), 'hex'))),
  ]),
  'sends a length that is never reached': Buffer.concat([
    HEADERS(FrameFlag.EndHeaders, STATUS_200),
    frame(FrameType.Data, 0, 1, Buffer.from('00ffffffff', 'hex')),
  ]),
  'sends bytes before its head': frame(FrameType.Data, 0, 1, MESSAGE),
  'sends no HTTP/2': Buffer.alloc(21, 255),
  'goes away, and sends a malformed frame': Buffer.concat([
    frame(FrameType.GoAway, 0, 0, Buffer.concat([uint32(0), uint32(2)])),
    frame(FrameType.Ping, 0, 0, Buffer.alloc(7)),
  ]),
  'resets the call, and sends data on an idle stream': Buffer.concat([
    frame(FrameType.RstStream, 0, 1, uint32(2)),
    frame(FrameType.Data, 0, 2, Buffer.alloc(1)),
  ]),
};

for (const [what, bytes] of Object.entries(HOSTILE)) {
  t.test(`a call fails, and the next one works, when the server ${what}`, async (t) => {
    let isHostile = true;
    const good = await startServer(t, (stream) => answer(stream, MESSAGE, { 'grpc-status': '0' }));
    const { port } = await startTcpUpstream(t, (socket) => {
      socket.on('error', () => {});
      socket.write(SETTINGS);
      let received = 0;
      socket.on('data', (part) => {
        received += part.length;
        // The call follows the client's preface and settings.
        if (received > 100 && isHostile) socket.write(bytes);
        isHostile = false;
      });
    });
    const { channel, clusters } = startCalls(t, [http2Cluster('a', port), http2Cluster('b', good)]);
    const call = open(channel('a'), METHOD);
    const { code } = await call.ended();
    t.ok([GrpcCode.Internal, GrpcCode.Unavailable, GrpcCode.ResourceExhausted].includes(code), `status ${code}`);
    t.equal(clusters.value('cluster.a.upstream_rq_active'), 0);
    t.equal(String(await unary(channel('b'), METHOD, MESSAGE)), 'hi');
  });
}

/** Calls `serve` with each stream. Its input is discarded: unread, it would make the stream end with a reset. */
async function startServer(
  t: Teardown,
  serve: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void,
): Promise<number> {
  const server = createServer();
  t.teardown(() => server.close());
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    serve(stream, headers);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** Sends a whole response; without `trailers` its stream ends with the body. */
function answer(stream: ServerHttp2Stream, body: string | Uint8Array, trailers?: Record<string, string>): void {
  stream.resume();
  stream.respond(GRPC, { waitForTrailers: trailers !== undefined });
  stream.on('wantTrailers', () => stream.sendTrailers(trailers!));
  stream.end(body);
}

function body(stream: ServerHttp2Stream, status: number): void {
  stream.respond({ ':status': status });
  stream.end('try later');
}

function twice(bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes, bytes]);
}
