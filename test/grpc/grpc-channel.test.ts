// gRPC channels to misbehaving hosts.

import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { status } from '@grpc/grpc-js';
import t from 'tap';
import type { GrpcService } from '../../src/config/generated/api.js';
import type { Http2Keepalive } from '../../src/grpc/cluster-hosts.js';
import { GrpcChannel } from '../../src/grpc/grpc-channel.js';
import { parseAddress } from '../../src/io/addresses/address.js';
import { freePort } from '../e2e/harness/environment.js';
import { startTcpUpstream, type Teardown, waitFor, withDeadline } from '../e2e/harness/index.js';

/** Minimum interval between connects to a host. */
const CONNECT_INTERVAL_MS = 500;

t.test('connects to a host that closes each connection at once are paced', async (t) => {
  const server = await startTcpUpstream(t, (socket) => {
    // SETTINGS, and a GOAWAY without a processed stream.
    socket.write(Buffer.from('0000000400000000000000080700000000000000000000000000', 'hex'));
  });
  const began = performance.now();
  const channel = channelTo(t, server.port);
  await channel.ready();
  await waitFor(() => server.accepted() >= 4, { what: 'further connections' });
  const accepted = server.accepted();
  t.ok(accepted <= 2 + (performance.now() - began) / CONNECT_INTERVAL_MS, `${accepted} connections`);
});

/** Ways in which a server ends its side of a stream. */
const ENDS: readonly [what: string, end: (stream: ServerHttp2Stream) => void, code: number, messages: number][] = [
  ['after a message, without a status', (stream) => answer(stream, MESSAGE), status.UNKNOWN, 1],
  ['within a message', (stream) => answer(stream, MESSAGE.subarray(0, 3)), status.UNKNOWN, 0],
  ['with an HTML page', (stream) => answer(stream, '<html>hello</html>'), status.UNKNOWN, 0],
  ['after messages, with a status', answerWell, status.OK, 2],
];

const GRPC = { ':status': 200, 'content-type': 'application/grpc' };
const MESSAGE = Buffer.from('00000000026869', 'hex');

for (const [what, end, code, messages] of ENDS) {
  t.test(`a call ends when its server ends the stream ${what}`, async (t) => {
    const channel = channelTo(t, await startServer(t, end));
    await channel.ready();
    const call = channel.stream('/service/method');
    let received = 0;
    call.on('data', () => received++);
    call.on('error', () => {});
    const ended = new Promise<number>((resolve) => call.on('status', ({ code }) => resolve(code)));
    t.equal(await withDeadline(ended, 'a status'), code);
    t.equal(received, messages);
  });
}

for (const encoding of [undefined, 'identity', 'snappy']) {
  t.test(`a message that is marked as compressed ends its call with a reason: grpc-encoding ${encoding}`, async (t) => {
    const port = await startServer(t, (stream) => {
      stream.respond(encoding === undefined ? GRPC : { ...GRPC, 'grpc-encoding': encoding });
      stream.write(Buffer.from('01000000026869', 'hex'));
    });
    const channel = channelTo(t, port);
    const reason = { code: status.INTERNAL, details: /^a message is marked as compressed, .*turn it off/ };
    const call = channel.stream('/service/method');
    call.on('error', () => {});
    call.resume();
    const ended = new Promise((resolve) => call.on('status', resolve));
    t.match(await withDeadline(ended, 'a status'), reason);
    await t.rejects(channel.unary('/service/method', new Uint8Array(0), 60_000), reason);
  });
}

t.test('a channel that is closed while it cannot connect stops reconnecting', async (t) => {
  const channel = channelTo(t, await freePort(), { connectTimeoutMs: 3_600_000 });
  const ready = channel.ready();
  const call = channel.stream('/service/method');
  call.on('error', () => {});
  const ended = new Promise<number>((resolve) => call.on('status', ({ code }) => resolve(code)));
  t.equal(await withDeadline(ended, 'a status'), status.UNAVAILABLE);
  channel.close();
  await t.rejects(withDeadline(ready, 'the end of the attempts'), { message: 'the channel is closed' });
});

t.test('unanswered pings end a connection and its calls', async (t) => {
  const server = await startTcpUpstream(t, (socket) => {
    // SETTINGS, and nothing afterwards.
    socket.write(Buffer.from('000000040000000000', 'hex'));
  });
  const channel = channelTo(t, server.port, { keepalive: { intervalMs: 50, timeoutMs: 50 } });
  await channel.ready();
  const call = channel.stream('/service/method');
  call.on('error', () => {});
  const ended = new Promise<number>((resolve) => call.on('status', ({ code }) => resolve(code)));
  t.equal(await withDeadline(ended, 'a status'), status.UNAVAILABLE);
  await waitFor(() => server.accepted() >= 2, { what: 'a further connection' });
});

t.test('a connection and its calls end when the peer sends invalid HTTP/2', async (t) => {
  const server = await startTcpUpstream(t, (socket) => {
    socket.write(Buffer.from('000000040000000000', 'hex'));
    socket.on('data', (bytes) => {
      // The call follows the client's preface and settings.
      if (bytes.length > 100) socket.write(Buffer.alloc(21, 255));
    });
  });
  const channel = channelTo(t, server.port);
  await channel.ready();
  const call = channel.stream('/service/method');
  call.on('error', () => {});
  const ended = new Promise((resolve) => call.on('status', resolve));
  // Newer versions of Node detect it themselves.
  const details = /the peer sent invalid HTTP\/2$|Protocol error$/;
  t.match(await withDeadline(ended, 'a status'), { code: status.INTERNAL, details });
  await waitFor(() => server.accepted() >= 2, { what: 'a further connection' });
});

t.test('answered pings keep a connection open, also without calls', async (t) => {
  const server = createServer();
  t.teardown(() => server.close());
  let pings = 0;
  let sessions = 0;
  server.on('session', (session) => {
    sessions++;
    session.on('ping', () => pings++);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const keepalive = { intervalMs: 10, timeoutMs: 15_000 };
  const channel = channelTo(t, (server.address() as AddressInfo).port, { keepalive });
  await channel.ready();
  await waitFor(() => pings >= 5, { what: 'five pings' });
  t.equal(sessions, 1);
});

t.test('an unanswered call ends with the timeout of its service, or else with its own', async (t) => {
  const port = await startServer(t, () => {});
  const call = (channel: GrpcChannel, ms: number) =>
    withDeadline(channel.unary('/service/method', new Uint8Array(0), ms), 'the end of its time');
  const late = { code: status.DEADLINE_EXCEEDED };
  await t.rejects(call(channelTo(t, port, { service: { timeout: '0.05s' } }), 600_000), late);
  await t.rejects(call(channelTo(t, port), 50), late);
});

/** Calls `serve` with each stream. Its input is discarded: unread, it would make the stream end with a reset. */
async function startServer(t: Teardown, serve: (stream: ServerHttp2Stream) => void): Promise<number> {
  const server = createServer();
  t.teardown(() => server.close());
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    stream.resume();
    serve(stream);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

function answer(stream: ServerHttp2Stream, body: string | Uint8Array): void {
  stream.respond(GRPC);
  stream.end(body);
}

function answerWell(stream: ServerHttp2Stream): void {
  stream.respond(GRPC, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(Buffer.concat([MESSAGE, MESSAGE]));
}

interface ChannelOptions {
  readonly service?: GrpcService;
  readonly keepalive?: Http2Keepalive;
  readonly connectTimeoutMs?: number;
}

function channelTo(
  t: Teardown,
  port: number,
  { keepalive, service, connectTimeoutMs = 5000 }: ChannelOptions = {},
): GrpcChannel {
  const channel = new GrpcChannel(
    { envoy_grpc: { cluster_name: 'service' }, ...service },
    {
      watchHosts(_cluster, onHosts) {
        const timer = setImmediate(() => onHosts([parseAddress(`127.0.0.1:${port}`)!], keepalive));
        return () => clearImmediate(timer);
      },
      connectTimeoutMs: () => connectTimeoutMs,
      callLimits: () => undefined,
      connected: () => {},
    },
  );
  t.teardown(() => channel.close());
  return channel;
}
