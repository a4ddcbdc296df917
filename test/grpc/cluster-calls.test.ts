// gRPC calls of the primary to clusters that change, and to targets without a cluster.

import { createServer as createTcpServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import t from 'tap';
import type { Cluster } from '../../src/config/generated/api.js';
import { GrpcChannel } from '../../src/grpc/grpc-channel.js';
import { GrpcCode } from '../../src/grpc/status.js';
import { authorityOf, clusterOfTarget } from '../../src/grpc/target.js';
import { LimitKind, limitWord } from '../../src/upstream/limits.js';
import { type Teardown, tempDir, waitFor } from '../e2e/harness/index.js';
import { http2Cluster, open, startCalls, unary } from './calls.js';

const METHOD = '/test.Echo/Say';
/** A stream that lasts until the client ends it. */
const HOLD = '/test.Echo/Hold';
const bytes = (text: string) => Buffer.from(text);

t.test('calls to a removed cluster fail at once, and work again when it is added again', async (t) => {
  const config = http2Cluster('a', await startEcho(t));
  const { channel, clusters } = startCalls(t, [config]);
  const a = channel('a');
  const say = async (text: string) => String(await unary(a, METHOD, bytes(text)));
  t.equal(await say('one'), 'one');
  clusters.set.removeStatic(['a']);
  await t.rejects(say('two'), { code: GrpcCode.Unavailable, details: 'the cluster has no host' });
  clusters.set.setStatic([config]);
  t.equal(await say('three'), 'three');
});

t.test('calls are subject to the circuit breakers of their cluster', async (t) => {
  const thresholds = [{ max_requests: 1, track_remaining: true }];
  const { channel, clusters } = startCalls(t, [
    http2Cluster('a', await startEcho(t), { circuit_breakers: { thresholds } }),
  ]);
  const a = channel('a');
  const say = async (text: string) => String(await unary(a, METHOD, bytes(text)));
  const value = (name: string) => {
    clusters.set.byName.get('a')!.updateGauges();
    return clusters.value(`cluster.a.${name}`);
  };
  t.equal(await say('one'), 'one');
  t.same(
    ['rq', 'pending', 'cx'].map((kind) => value(`circuit_breakers.default.remaining_${kind}`)),
    [1, 1024, 1023],
  );
  const { call, received } = open(a, HOLD);
  call!.write(bytes('hold'));
  await received(1);
  t.same([value('circuit_breakers.default.rq_open'), value('circuit_breakers.default.remaining_rq')], [1, 0]);
  await t.rejects(say('two'), { code: GrpcCode.Unavailable, details: /circuit breaker/ });
  t.equal(value('upstream_rq_active_overflow'), 1);
  call!.cancel();
  t.equal(await say('three'), 'three');
});

t.test('calls and connections count in the next version of their cluster, as long as they last', async (t) => {
  const config = http2Cluster('a', await startEcho(t));
  const limitedTo = (requests: number): Cluster => ({
    ...config,
    circuit_breakers: { thresholds: [{ max_requests: requests }] },
  });
  const { channel, clusters } = startCalls(t, [limitedTo(2)]);
  const a = channel('a');
  const say = async () => String(await unary(a, METHOD, bytes('a')));
  const { call, messages, received } = open(a, HOLD);
  call!.write(bytes('hold'));
  await received(1);
  const { block } = clusters.set.byName.get('a')!.snapshot();
  const held = () =>
    [LimitKind.Connections, LimitKind.Requests].map((kind) => clusters.words.read(limitWord(block, kind, 0)));
  t.same(held(), [1, 1]);

  clusters.set.setStatic([limitedTo(1)]);
  await clusters.turn();
  t.equal(clusters.set.byName.get('a')!.snapshot().block, block);
  await t.rejects(say(), { code: GrpcCode.Unavailable, details: /circuit breaker/ });
  clusters.set.setStatic([limitedTo(2)]);
  await clusters.turn();
  t.equal(await say(), 'a');

  clusters.set.removeStatic(['a']);
  await clusters.turn();
  clusters.settle();
  t.equal(held()[1], 1, 'the stream goes on');
  call!.write(bytes('more'));
  await received(2);
  t.equal(messages.length, 2);
  clusters.set.setStatic([limitedTo(1)]);
  await clusters.turn();
  await t.rejects(say(), { code: GrpcCode.Unavailable, details: /circuit breaker/ });
  call!.cancel();
  t.equal(await say(), 'a');
  clusters.set.removeStatic(['a']);
  await waitFor(() => held().every((count) => count === 0), { what: 'nothing is held' });
});

t.test('calls queued for a connection are subject to them too', async (t) => {
  const server = createTcpServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const sockets: Socket[] = [];
  server.on('connection', (socket) => sockets.push(socket));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  // A black hole: the connect succeeds, but TLS never does, so that calls stay queued.
  const { port } = server.address() as { port: number };
  const thresholds = [{ max_pending_requests: 1 }];
  const { channel, clusters } = startCalls(t, [
    http2Cluster('a', port, { circuit_breakers: { thresholds }, ...UPSTREAM_TLS }),
  ]);
  const first = open(channel('a'), HOLD);
  await waitFor(() => sockets.length === 1, { what: 'the connection' });
  await t.rejects(unary(channel('a'), METHOD, bytes('two')), {
    code: GrpcCode.Unavailable,
    details: /circuit breaker/,
  });
  t.equal(clusters.value('cluster.a.upstream_rq_pending_overflow'), 1);
  first.call!.cancel();
  t.equal(clusters.value('cluster.a.upstream_rq_pending_active'), 0);
});

const UPSTREAM_TLS: Partial<Cluster> = {
  transport_socket: {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
    },
  },
};

t.test('a target without a cluster has hosts of its own, as long as a channel uses it', async (t) => {
  const port = await startEcho(t);
  const path = join(tempDir(t), 'echo.sock');
  await startEcho(t, `unix:${path}`);
  const { calls, clusters } = startCalls(t, []);
  for (const target_uri of [`127.0.0.1:${port}`, `dns:localhost:${port}`, `ipv4:127.0.0.1:${port}`, `unix:${path}`]) {
    const service = { google_grpc: { target_uri, stat_prefix: 'a' } };
    const [channel, other] = [new GrpcChannel(service, calls), new GrpcChannel(service, calls)];
    const say = () => unary(channel, METHOD, bytes('hello')).then(String, () => undefined);
    let said: string | undefined;
    // The name must be resolved first.
    while ((said = await say()) === undefined) await clusters.turn();
    t.equal(said, 'hello', target_uri);
    other.close();
    t.equal(await say(), 'hello', 'one user is left');
    channel.close();
    await clusters.turn();
    t.equal(await say(), undefined, 'none is left');
  }
});

t.test('targets name their hosts as in gRPC', (t) => {
  for (const [uri, authority, type, ...hosts] of [
    ['api:50051', 'api:50051', 'STRICT_DNS', 'api:50051'],
    ['dns:///api', 'api', 'STRICT_DNS', 'api:443'],
    ['dns://192.0.2.1/api:80', 'api:80', 'STRICT_DNS', 'api:80'],
    ['dns:[::1]:80', '[::1]:80', 'STATIC', '::1:80'],
    ['ipv4:192.0.2.1:80,192.0.2.2:81', '192.0.2.1:80,192.0.2.2:81', 'STATIC', '192.0.2.1:80', '192.0.2.2:81'],
    ['ipv6:[2001:db8::1]:80', '[2001:db8::1]:80', 'STATIC', '2001:db8::1:80'],
    ['unix:/run/a.sock', 'localhost', 'STATIC', '/run/a.sock'],
    ['unix:///run/a.sock', 'localhost', 'STATIC', '/run/a.sock'],
  ] as const) {
    const cluster = clusterOfTarget(uri, 'name');
    t.equal(authorityOf(uri), authority);
    t.equal(cluster.type, type, uri);
    const found = cluster.load_assignment!.endpoints![0]!.lb_endpoints!.map(({ endpoint }) => {
      const { pipe, socket_address: socket } = endpoint!.address!;
      return pipe?.path ?? `${socket!.address}:${socket!.port_value}`;
    });
    t.same(found, hosts, uri);
  }
  t.end();
});

async function startEcho(t: Teardown, address = '127.0.0.1:0'): Promise<number> {
  const server = new Server();
  const same = (value: Buffer) => value;
  const shape = { requestStream: false, responseStream: false, requestSerialize: same, requestDeserialize: same };
  const serialize = { ...shape, responseSerialize: same, responseDeserialize: same };
  const definition = {
    say: { path: METHOD, ...serialize },
    hold: { path: HOLD, ...serialize, requestStream: true, responseStream: true },
  };
  server.addService(definition as never, {
    say: (call: { request: Buffer }, answer: (error: null, value: Buffer) => void) => answer(null, call.request),
    hold: (call: { on(event: 'data', listener: (value: Buffer) => void): void; write(value: Buffer): void }) => {
      call.on('data', (value) => call.write(value));
    },
  });
  t.teardown(() => server.forceShutdown());
  return new Promise((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port);
      else reject(error);
    });
  });
}
