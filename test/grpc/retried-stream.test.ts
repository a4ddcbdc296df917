// Streaming gRPC calls that are retried: events of the next try may write to the call, or cancel it.

import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import type { GrpcStream } from '../../src/grpc/retried-grpc-call.js';
import { compileCallRetries } from '../../src/upstream/http-calls/call-retry-policy.js';
import { type Teardown, waitFor } from '../e2e/harness/index.js';
import { http2Cluster, startCalls } from './calls.js';

const METHOD = '/service/method';
const GRPC = { ':status': 200, 'content-type': 'application/grpc' };
const PREFIX_BYTES = 5;
const POLICY = compileCallRetries(
  { retry_on: 'unavailable', retry_back_off: { base_interval: '0.001s', max_interval: '20s' } },
  '',
)!;

/** Refuses the first stream after its first bytes, and reads the others. */
async function startServer(t: Teardown) {
  const state = { streams: 0, closed: 0, bytes: 0 };
  const server = createServer();
  t.teardown(() => server.close());
  server.on('stream', (stream: ServerHttp2Stream) => {
    const isFirst = ++state.streams === 1;
    stream.on('error', () => {});
    stream.on('close', () => state.closed++);
    if (!isFirst) stream.respond(GRPC);
    stream.on('data', (bytes: Buffer) => {
      if (!isFirst) state.bytes += bytes.length;
      else if (!stream.headersSent) stream.respond({ ...GRPC, 'grpc-status': '14' }, { endStream: true });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, state };
}

/** Opens a stream with a first message. `onNext` is called when the second try has its connection, before that is known to the caller. */
async function openRetried(t: Teardown, onNext: (call: GrpcStream) => void) {
  const { port, state } = await startServer(t);
  const { channel, clusters } = startCalls(t, [http2Cluster('a', port)]);
  let connects = 0;
  let ends = 0;
  const events = {
    onConnected: () => {
      if (++connects === 2) onNext(call!);
    },
    onMessage: () => {},
    onEnd: () => void ends++,
  };
  const call = channel('a').retriedStream(METHOD, events, undefined, POLICY);
  call!.write(Buffer.from('first'));
  await waitFor(() => connects === 2, { what: 'the second try' });
  return { call: call!, state, clusters, ends: () => ends };
}

t.test('messages of any length that are written when the next try begins are not lost', async (t) => {
  const { call, ends, state } = await openRetried(t, (call) => {
    for (let i = 0; i < 3; i++) call.write(Buffer.alloc(100_000, 'x'));
  });
  const expected = 4 * PREFIX_BYTES + 5 + 300_000;
  await waitFor(() => state.bytes === expected, { what: 'all messages' });
  t.equal(ends(), 0);
  call.cancel();
});

t.test('a call that is cancelled when the next try begins has ended', async (t) => {
  const { clusters, ends, state } = await openRetried(t, (call) => call.cancel());
  await waitFor(() => state.closed === 2, { what: 'the end of both streams' });
  t.equal(clusters.value('cluster.a.upstream_rq_active'), 0);
  t.equal(ends(), 0);
});
