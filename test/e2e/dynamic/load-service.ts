// A load reporting service (LRS) that records what it receives.

import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { loadMessages } from '../../../src/config/schema/messages.js';
import { framed, MessageReader } from '../../../src/grpc/message-reader.js';
import type { Teardown } from '../harness/index.js';

const REQUEST = 'envoy.service.load_stats.v3.LoadStatsRequest';
const RESPONSE = 'envoy.service.load_stats.v3.LoadStatsResponse';
const types = loadMessages(REQUEST, RESPONSE);

export interface Load {
  readonly total_successful_requests?: number;
  readonly total_error_requests?: number;
  readonly total_issued_requests?: number;
  readonly total_requests_in_progress?: number;
}

export interface ClusterLoad {
  readonly cluster_name: string;
  readonly cluster_service_name?: string;
  readonly upstream_locality_stats?: readonly (Load & {
    readonly locality: Record<string, string>;
    readonly priority?: number;
    readonly upstream_endpoint_stats?: readonly (Load & { readonly address: object })[];
  })[];
  readonly total_dropped_requests?: number;
  readonly load_report_interval: { readonly seconds?: number; readonly nanos?: number };
}

/** A LoadStatsRequest; numbers of 64 bits are numbers. */
export interface LoadReport {
  readonly node: Record<string, unknown>;
  readonly cluster_stats?: readonly ClusterLoad[];
}

export interface LoadService {
  readonly port: number;
  readonly heads: IncomingHttpHeaders[];
  readonly reports: LoadReport[];
  /** Sends a LoadStatsResponse on the last stream. */
  request(response: object): void;
  /** Sends bytes as a message. */
  sendBytes(bytes: Uint8Array): void;
  /** Ends the last stream. */
  endStream(): void;
}

export async function startLoadService(t: Teardown): Promise<LoadService> {
  const heads: IncomingHttpHeaders[] = [];
  const reports: LoadReport[] = [];
  let last: ServerHttp2Stream | undefined;
  const sessions = new Set<{ destroy(): void }>();
  const server = createServer();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, head) => {
    const reader = new MessageReader(2 ** 24);
    heads.push(head);
    last = stream;
    stream.on('error', () => {});
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.on('data', (bytes: Buffer) => {
      reader.push(bytes);
      for (let next = reader.next(); next !== undefined; next = reader.next()) {
        const type = types[REQUEST];
        reports.push(type.toObject(type.decode(next as Buffer), { longs: Number }) as LoadReport);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  const sendBytes = (bytes: Uint8Array) => void last!.write(framed(bytes));
  return {
    port: (server.address() as AddressInfo).port,
    heads,
    reports,
    request: (response) => sendBytes(types[RESPONSE].encode(types[RESPONSE].fromObject(response)).finish()),
    sendBytes,
    endStream: () => void last!.end(),
  };
}
