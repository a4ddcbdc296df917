// An access log service (ALS) that records what it receives.

import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { loadMessages } from '../../../src/config/schema/messages.js';
import { MessageReader } from '../../../src/grpc/message-reader.js';
import type { GrpcCode } from '../../../src/grpc/status.js';
import { type Teardown, waitFor } from '../harness/index.js';

const MESSAGE = 'envoy.service.accesslog.v3.StreamAccessLogsMessage';
const type = loadMessages(MESSAGE)[MESSAGE];

export interface LogEntry {
  readonly common_properties: Record<string, unknown>;
  readonly protocol_version?: string;
  readonly request?: Record<string, unknown>;
  readonly response?: Record<string, unknown>;
  readonly connection_properties?: Record<string, unknown>;
}

/** A StreamAccessLogsMessage as plain data; numbers of 64 bits are numbers. */
export interface LogMessage {
  readonly identifier?: { readonly node: Record<string, unknown>; readonly log_name: string };
  readonly http_logs?: { readonly log_entry: readonly LogEntry[] };
  readonly tcp_logs?: { readonly log_entry: readonly LogEntry[] };
}

export interface LogService {
  readonly port: number;
  /** Heads of the streams. */
  readonly heads: IncomingHttpHeaders[];
  /** By stream. */
  readonly streams: LogMessage[][];
  readonly messages: LogMessage[];
  /** Resolves with all entries, when there are `count`. */
  entries(count: number): Promise<LogEntry[]>;
  /** Ends the open streams with a status. */
  endStreams(status: GrpcCode): void;
  /** Stops listening and breaks the connections. */
  stop(): Promise<void>;
}

export interface LogServiceOptions {
  readonly port?: number;
  /** It reads nothing. */
  readonly isDeaf?: boolean;
}

export async function startLogService(
  t: Teardown,
  { port = 0, isDeaf = false }: LogServiceOptions = {},
): Promise<LogService> {
  const heads: IncomingHttpHeaders[] = [];
  const streams: LogMessage[][] = [];
  const messages: LogMessage[] = [];
  const open = new Set<ServerHttp2Stream>();
  const server = createServer();
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, head) => {
    const received: LogMessage[] = [];
    const reader = new MessageReader(2 ** 24);
    heads.push(head);
    streams.push(received);
    open.add(stream);
    stream.on('error', () => {});
    stream.on('close', () => open.delete(stream));
    if (isDeaf) return;
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('data', (bytes: Buffer) => {
      reader.push(bytes);
      for (let next = reader.next(); next !== undefined; next = reader.next()) {
        const message = type.toObject(type.decode(next as Buffer), { longs: Number, enums: String }) as LogMessage;
        received.push(message);
        messages.push(message);
      }
    });
    stream.on('end', () => stream.end());
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const stop = () =>
    new Promise<void>((resolve) => {
      for (const session of sessions) session.destroy();
      server.close(() => resolve());
    });
  t.teardown(stop);
  const all = () =>
    messages.flatMap(({ http_logs: http, tcp_logs: tcp }) => [...(http?.log_entry ?? []), ...(tcp?.log_entry ?? [])]);
  return {
    port: (server.address() as AddressInfo).port,
    heads,
    streams,
    messages,
    async entries(count) {
      await waitFor(() => all().length >= count, { what: `${count} entries` });
      return all();
    },
    endStreams(status) {
      for (const stream of open) {
        stream.removeAllListeners('wantTrailers');
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': String(status) }));
        stream.end();
      }
    },
    stop,
  };
}
