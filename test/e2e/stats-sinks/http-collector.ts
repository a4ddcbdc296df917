// An OpenTelemetry collector that takes exports by HTTP, in each of the ways in which one can behave.

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
  /** Whole exports, in the order of their arrival. */
  readonly exports: HttpExport[];
  /** How exports are answered from now on; 200 at first. */
  answer: (response: ServerResponse) => void;
  /** It reads nothing more of requests that come. */
  isDeaf: boolean;
  /** Requests that have begun. */
  begun: number;
  /** Closes all connections and listens no more. */
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
