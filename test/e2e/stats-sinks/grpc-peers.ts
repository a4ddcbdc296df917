// gRPC servers that receive metrics: Envoy's metrics service and an OpenTelemetry collector.

import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Server, ServerCredentials, type ServerReadableStream, type ServerUnaryCall, status } from '@grpc/grpc-js';
import { loadMessages } from '../../../src/config/schema/messages.js';
import type { Teardown } from '../harness/index.js';

const MESSAGE = 'envoy.service.metrics.v3.StreamMetricsMessage';
const REQUEST = 'opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest';
const types = loadMessages(MESSAGE, REQUEST);

type Json = Record<string, unknown>;

export interface GrpcPeer {
  readonly port: number;
  /** Decoded messages; numbers and enum names in plain data. */
  readonly messages: Json[];
  readonly metadata: Json[];
  readonly streams: number[];
  close(): void;
}

export interface PeerOptions {
  readonly port?: number;
  /** Accepts calls without answering. */
  readonly isDeaf?: boolean;
}

/** Serves MetricsService/StreamMetrics. */
export function startMetricsService(t: Teardown, options: PeerOptions = {}): Promise<GrpcPeer> {
  return start(t, options, (server, peer) => {
    const path = '/envoy.service.metrics.v3.MetricsService/StreamMetrics';
    const definition = { path, requestStream: true, responseStream: false, ...codec(MESSAGE) };
    server.addService(
      { StreamMetrics: definition },
      {
        StreamMetrics(call: ServerReadableStream<Json, Buffer>) {
          peer.streams.push(peer.messages.length);
          peer.metadata.push(call.metadata.getMap());
          call.on('error', () => {});
          call.on('data', (message: Json) => peer.messages.push(message));
        },
      },
    );
  });
}

/** Starts an HTTP/2 server that accepts streams and never reads them. */
export async function startDeafServer(t: Teardown): Promise<{ readonly port: number }> {
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream) => stream.on('error', () => {}));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port };
}

/** Serves MetricsService/Export of OpenTelemetry. */
export function startCollector(t: Teardown, options: PeerOptions = {}): Promise<GrpcPeer> {
  return start(t, options, (server, peer) => {
    const path = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';
    const definition = { path, requestStream: false, responseStream: false, ...codec(REQUEST) };
    server.addService(
      { Export: definition },
      {
        Export(call: ServerUnaryCall<Json, Buffer>, answer: (error: { code: number } | null, value?: Buffer) => void) {
          peer.messages.push(call.request);
          peer.metadata.push(call.metadata.getMap());
          if (options.isDeaf) call.on('cancelled', () => answer({ code: status.CANCELLED }));
          else answer(null, Buffer.alloc(0));
        },
      },
    );
  });
}

function codec(name: typeof MESSAGE | typeof REQUEST) {
  return {
    requestSerialize: (message: Buffer) => message,
    requestDeserialize: (bytes: Buffer) =>
      types[name].toObject(types[name].decode(bytes), { longs: Number, enums: String }) as Json,
    responseSerialize: (message: Buffer) => message,
    responseDeserialize: (bytes: Buffer) => bytes,
  };
}

async function start(
  t: Teardown,
  { port = 0 }: PeerOptions,
  addServices: (server: Server, peer: GrpcPeer) => void,
): Promise<GrpcPeer> {
  const server = new Server({ 'grpc.max_receive_message_length': -1 });
  const peer = { port: 0, messages: [], metadata: [], streams: [], close: () => server.forceShutdown() };
  addServices(server, peer);
  peer.port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  t.teardown(peer.close);
  return peer;
}
