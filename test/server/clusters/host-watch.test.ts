// gRPC channels of the primary to clusters that are added and removed.

import { once } from 'node:events';
import { createServer } from 'node:http2';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import t from 'tap';
import type { Cluster, HealthStatus } from '../../../src/config/generated/api.js';
import { GrpcChannel } from '../../../src/grpc/grpc-channel.js';
import { HostWatch } from '../../../src/server/clusters/host-watch.js';
import { LimitKind, limitWord } from '../../../src/upstream/limits.js';
import { type Teardown, waitFor } from '../../e2e/harness/index.js';
import { Clusters } from './clusters.js';

const METHOD = '/test.Echo/Say';
/** A stream that lasts until the client ends it. */
const HOLD = '/test.Echo/Hold';
const bytes = (text: string) => Buffer.from(text);

t.test('calls to a removed cluster fail at once, and work again when it is added again', async (t) => {
  const config = clusterOf(await startEcho(t));
  const clusters = new Clusters();
  clusters.start([config]);
  const watch = new HostWatch(clusters.set.byName, () => {});
  const channel = new GrpcChannel({ envoy_grpc: { cluster_name: 'a' } }, watch);
  t.teardown(() => channel.close());
  const say = async (text: string) => (await channel.unary(METHOD, bytes(text), 20_000)).toString();
  t.equal(await say('one'), 'one');
  clusters.set.removeStatic(['a']);
  watch.clusterRemoved('a');
  await t.rejects(say('two'), { code: status.UNAVAILABLE, details: /cluster 'a' has no host/ });
  clusters.set.setStatic([config]);
  watch.clusterChanged(clusters.set.byName.get('a')!);
  t.equal(await say('three'), 'three');
});

t.test('channels are notified of the healthy hosts, or of all hosts if none is healthy', async (t) => {
  const clusters = new Clusters();
  const endpoint = (address: string, health_status: HealthStatus) => ({
    endpoint: { address: { socket_address: { address, port_value: 80 } } },
    health_status,
  });
  for (const [status, expected] of [
    ['HEALTHY', ['10.0.0.2']],
    ['DEGRADED', ['10.0.0.2']],
    ['DRAINING', ['10.0.0.1', '10.0.0.2']],
  ] as const) {
    const lb_endpoints = [endpoint('10.0.0.1', 'UNHEALTHY'), endpoint('10.0.0.2', status)];
    clusters.set.setStatic([{ name: status, load_assignment: { endpoints: [{ lb_endpoints }] } }]);
    let reported: readonly string[] | undefined;
    new HostWatch(clusters.set.byName, () => {}).watchHosts(status, (hosts) => (reported = hosts.map(({ ip }) => ip)));
    await clusters.turn();
    t.same(reported, expected, status);
  }
});

t.test('connections to a cluster with connection_keepalive are pinged', async (t) => {
  let pings = 0;
  const server = createServer();
  server.on('session', (session) => session.on('ping', () => pings++));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const clusters = new Clusters();
  clusters.start([
    {
      ...clusterOf((server.address() as AddressInfo).port),
      http2_protocol_options: { connection_keepalive: { interval: '0.01s', timeout: '20s' } },
    },
  ]);
  const channel = new GrpcChannel({ envoy_grpc: { cluster_name: 'a' } }, new HostWatch(clusters.set.byName, () => {}));
  t.teardown(() => channel.close());
  await channel.ready();
  await waitFor(() => pings >= 3, { what: 'three pings' });
});

t.test('calls are subject to the circuit breakers of their cluster', async (t) => {
  const thresholds = [{ max_requests: 1, track_remaining: true }];
  const { clusters, channel } = channelTo(t, { ...clusterOf(await startEcho(t)), circuit_breakers: { thresholds } });
  const say = async (text: string) => (await channel.unary(METHOD, bytes(text), 20_000)).toString();
  const value = (name: string) => {
    clusters.set.byName.get('a')!.updateGauges();
    return clusters.value(`cluster.a.${name}`);
  };
  t.equal(await say('one'), 'one');
  t.same(
    ['rq', 'pending', 'cx'].map((kind) => value(`circuit_breakers.default.remaining_${kind}`)),
    [1, 1024, 1023],
  );
  const stream = channel.stream(HOLD);
  const ended = new Promise((resolve) => stream.on('error', resolve));
  stream.write(bytes('hold'));
  await once(stream, 'data');
  t.same([value('circuit_breakers.default.rq_open'), value('circuit_breakers.default.remaining_rq')], [1, 0]);
  t.equal(value('upstream_rq_pending_overflow'), 0);
  await t.rejects(say('two'), { code: status.UNAVAILABLE, details: /circuit breaker/ });
  t.equal(value('upstream_rq_pending_overflow'), 1);
  stream.cancel();
  await ended;
  t.equal(await say('three'), 'three');
  clusters.set.removeStatic(['a']);
  t.equal(clusters.value('cluster.a.circuit_breakers.default.rq_open'), undefined);
  channel.close();
});

t.test('calls and connections count in the next version of their cluster, as long as they last', async (t) => {
  const config = { ...clusterOf(await startEcho(t)), http2_protocol_options: {} };
  const limitedTo = (requests: number) => ({ circuit_breakers: { thresholds: [{ max_requests: requests }] } });
  const { clusters, channel, watch } = channelTo(t, { ...config, ...limitedTo(2) });
  const say = async () => (await channel.unary(METHOD, bytes('a'), 20_000)).toString();
  const stream = channel.stream(HOLD);
  const ended = new Promise((resolve) => stream.on('error', resolve));
  stream.write(bytes('hold'));
  await once(stream, 'data');
  const block = clusters.set.byName.get('a')!.snapshot().block;
  const held = () =>
    [LimitKind.Connections, LimitKind.Requests].map((kind) => clusters.words.read(limitWord(block, kind, 0)));
  t.same(held(), [1, 1]);

  clusters.set.setStatic([{ ...config, ...limitedTo(1) }]);
  watch.clusterChanged(clusters.set.byName.get('a')!);
  t.equal(clusters.set.byName.get('a')!.snapshot().block, block);
  t.same(held(), [1, 1]);
  await t.rejects(say(), { code: status.UNAVAILABLE, details: /circuit breaker/ });
  clusters.set.setStatic([{ ...config, ...limitedTo(2) }]);
  watch.clusterChanged(clusters.set.byName.get('a')!);
  t.equal(await say(), 'a');

  clusters.set.removeStatic(['a']);
  watch.clusterRemoved('a');
  await clusters.turn();
  clusters.settle();
  t.same(held(), [1, 1]);
  clusters.set.setStatic([{ ...config, ...limitedTo(1) }]);
  watch.clusterChanged(clusters.set.byName.get('a')!);
  await t.rejects(say(), { code: status.UNAVAILABLE, details: /circuit breaker/ });
  stream.cancel();
  await ended;
  t.equal(await say(), 'a');
  clusters.set.removeStatic(['a']);
  watch.clusterRemoved('a');
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
  const cluster = clusterOf((server.address() as AddressInfo).port);
  const thresholds = [{ max_pending_requests: 1 }];
  const { clusters, channel } = channelTo(t, { ...cluster, circuit_breakers: { thresholds } });
  const first = channel.unary(METHOD, bytes('one'), 60_000);
  first.catch(() => {});
  const isOpen = () => {
    clusters.set.byName.get('a')!.updateGauges();
    return clusters.value('cluster.a.circuit_breakers.default.rq_pending_open') === 1;
  };
  await waitFor(isOpen, { what: 'a call that waits' });
  await t.rejects(channel.unary(METHOD, bytes('two'), 60_000), {
    code: status.UNAVAILABLE,
    details: /circuit breaker/,
  });
  channel.close();
  await t.rejects(first);
  await waitFor(() => !isOpen(), { what: 'the call to be released' });
});

function channelTo(t: Teardown, config: Cluster) {
  const clusters = new Clusters();
  clusters.start([{ ...config, http2_protocol_options: {} }]);
  const watch = new HostWatch(clusters.set.byName, () => {});
  const channel = new GrpcChannel({ envoy_grpc: { cluster_name: 'a' } }, watch);
  t.teardown(() => channel.close());
  return { clusters, channel, watch };
}

function clusterOf(port: number): Cluster {
  const address = { socket_address: { address: '127.0.0.1', port_value: port } };
  return {
    name: 'a',
    type: 'STATIC',
    load_assignment: { cluster_name: 'a', endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
  };
}

function startEcho(t: Teardown): Promise<number> {
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
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port);
      else reject(error);
    });
  });
}
