// gRPC channels of the primary to clusters that come and go.

import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import t from 'tap';
import type { Cluster } from '../../../src/config/generated/api.js';
import { GrpcChannel } from '../../../src/grpc/grpc-channel.js';
import { HostWatch } from '../../../src/server/clusters/host-watch.js';
import { type Teardown, waitFor } from '../../e2e/harness/index.js';
import { Clusters } from './clusters.js';

const METHOD = '/test.Echo/Say';
const bytes = (text: string) => Buffer.from(text);

t.test('calls to a removed cluster fail at once, and go on when it comes again', async (t) => {
  const config = clusterOf(await startEcho(t));
  const clusters = new Clusters();
  clusters.start([config]);
  const watch = new HostWatch(clusters.set.byName);
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
  const channel = new GrpcChannel({ envoy_grpc: { cluster_name: 'a' } }, new HostWatch(clusters.set.byName));
  t.teardown(() => channel.close());
  await channel.ready();
  await waitFor(() => pings >= 3, { what: 'three pings' });
});

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
  const definition = { say: { path: METHOD, ...shape, responseSerialize: same, responseDeserialize: same } };
  server.addService(definition as never, {
    say: (call: { request: Buffer }, answer: (error: null, value: Buffer) => void) => answer(null, call.request),
  });
  t.teardown(() => server.forceShutdown());
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port);
      else reject(error);
    });
  });
}
