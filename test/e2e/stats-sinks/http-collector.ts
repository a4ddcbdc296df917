// An OpenTelemetry collector over HTTP with configurable behaviour.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadMessages } from '../../../src/config/schema/messages.js';
import type { Teardown } from '../harness/index.js';

const REQUEST = 'opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest';
const type = loadMessages(REQUEST)[REQUEST];

export interface Metric {
  readonly name: string;
  readonly sum?: { readonly data_points: readonly { readonly as_int: number }[] };
  readonly gauge?: object;
}

export interface HttpExport {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly resource: object;
  readonly metrics: readonly Metric[];
}

export interface HttpCollector {
  readonly port: number;
  /** Complete exports, in order of arrival. */
  readonly exports: HttpExport[];
  /** Status of further responses; 200 at first. */
  answer: (response: ServerResponse) => void;
  /** Stops reading further requests. */
  isDeaf: boolean;
  /** Number of requests that have started. */
  begun: number;
  /** Closes all connections and stops listening. */
  close(): void;
}

export async function startHttpCollector(t: Teardown, port = 0): Promise<HttpCollector> {
  const server = createServer((request, response) => {
    collector.begun++;
    request.on('error', () => {});
    response.on('error', () => {});
    if (collector.isDeaf) return void request.pause();
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      collector.exports.push({ method, path, headers, ...decoded(Buffer.concat(pieces)) });
      collector.answer(response);
    });
  });
  const collector: HttpCollector & { port: number } = {
    port: 0,
    exports: [],
    begun: 0,
    isDeaf: false,
    answer: (response) => response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end(),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  collector.port = (server.address() as AddressInfo).port;
  t.teardown(() => collector.close());
  return collector;
}

function decoded(body: Buffer): { readonly resource: object; readonly metrics: readonly Metric[] } {
  const message = type.toObject(type.decode(body), { longs: Number, enums: String });
  const [first] = message['resource_metrics'] as [{ resource: object; scope_metrics: [{ metrics: Metric[] }] }];
  return { resource: first.resource, metrics: first.scope_metrics[0].metrics };
}
