// gRPC calls of this thread to clusters, over real connections.
//
//   const { channel } = startCalls(t, [http2Cluster('a', port)]);
//   await unary(channel('a'), '/service/method', message);   // rejects with the GrpcStatus
//   const call = open(channel('a'), '/service/method');      // a stream, whose events are recorded

import type { Cluster, GrpcService } from '../../src/config/generated/api.js';
import { EXTENSIONS } from '../../src/extensions/index.js';
import { ExtensionRegistry } from '../../src/extensions/registry.js';
import type { GrpcCall } from '../../src/grpc/grpc-call.js';
import { GrpcChannel } from '../../src/grpc/grpc-channel.js';
import type { GrpcStatus } from '../../src/grpc/status.js';
import { loadShim } from '../../src/io/shim.js';
import { Runtime } from '../../src/runtime/runtime.js';
import { CallTargets } from '../../src/server/clusters/call-targets.js';
import { PrimaryCalls } from '../../src/server/clusters/primary-calls.js';
import type { Primary } from '../../src/server/primary.js';
import { serverPlace } from '../../src/upstream/server-place.js';
import { type Teardown, waitFor, withDeadline } from '../e2e/harness/index.js';
import { Clusters } from '../server/clusters/clusters.js';

/** This server's own address. */
export const OWN_IP = '192.0.2.1';

export interface Calls {
  readonly clusters: Clusters;
  readonly calls: PrimaryCalls;
  /** Returns a channel to a cluster, with other settings of the service. */
  channel(cluster: string, service?: GrpcService): GrpcChannel;
}

export function startCalls(t: Teardown, configs: readonly Cluster[]): Calls {
  const clusters = new Clusters();
  const targets = new Clusters({ shared: clusters });
  const primary = {
    extensions: new ExtensionRegistry(EXTENSIONS),
    shim: loadShim(),
    store: clusters.store,
    words: clusters.words,
  } as unknown as Primary;
  const calls = new PrimaryCalls(primary, clusters.set, {
    ...{ runtime: new Runtime(), place: serverPlace({}), reserve: 0, ip: OWN_IP },
    targets: new CallTargets(targets.set),
  });
  clusters.calls = targets.calls = calls;
  clusters.start(configs);
  t.teardown(() => {
    clusters.set.stop();
    targets.set.stop();
    calls.close();
  });
  return {
    clusters,
    calls,
    channel: (cluster_name, service) => new GrpcChannel({ envoy_grpc: { cluster_name }, ...service }, calls),
  };
}

export function http2Cluster(name: string, port: number, more: Partial<Cluster> = {}): Cluster {
  const address = { socket_address: { address: '127.0.0.1', port_value: port } };
  return {
    ...{ name, type: 'STATIC', http2_protocol_options: {} },
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
    ...more,
  };
}

/** Makes a unary call. Rejects with its status if that is not OK. */
export function unary(channel: GrpcChannel, path: string, message: Uint8Array, timeoutMs = 20_000): Promise<Buffer> {
  const answer = new Promise<Buffer>((onAnswer, onFailure) => {
    channel.unary(path, message, timeoutMs, { onAnswer, onFailure });
  });
  return withDeadline(answer, 'the end of the call');
}

/** A stream with what it has received. */
export interface OpenCall {
  /** Undefined: it has ended already. */
  readonly call: GrpcCall | undefined;
  readonly messages: Buffer[];
  ended(): Promise<GrpcStatus>;
  /** Resolves when `count` messages were received. */
  received(count: number): Promise<unknown>;
}

export function open(channel: GrpcChannel, path: string): OpenCall {
  const messages: Buffer[] = [];
  let onEnd: (status: GrpcStatus) => void = () => {};
  const status = new Promise<GrpcStatus>((resolve) => {
    onEnd = resolve;
  });
  const call = channel.stream(path, { onMessage: (message) => void messages.push(message), onEnd });
  return {
    call,
    messages,
    ended: () => withDeadline(status, 'the end of the call'),
    received: (count) => waitFor(() => messages.length >= count, { what: `${count} messages` }),
  };
}
