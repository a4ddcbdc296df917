// One HTTP/1.1 request on a separate connection, and the complete response.

import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { DEFAULT_DEADLINE_MS } from './wait-for.js';

export interface HttpRequestOptions {
  method?: string;
  headers?: OutgoingHttpHeaders;
  body?: string | Uint8Array;
  host?: string;
  /** The client's own address. */
  localAddress?: string;
  /** Path of a Unix socket to use instead of the port. */
  socketPath?: string;
  deadlineMs?: number;
}

export interface HttpAnswer {
  status: number;
  reason: string;
  headers: IncomingHttpHeaders;
  /** Name, value, name, value … as received, in their original case. */
  rawHeaders: string[];
  /** Latin-1, so that every byte is one character. */
  body: string;
  trailers: NodeJS.Dict<string>;
}

/** Whether 127.0.0.1 refuses connections to this port. */
export function isRefused(port: number): Promise<boolean> {
  return httpRequest(port).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ECONNREFUSED',
  );
}

/** Sends one request to 127.0.0.1 and reads the whole response; rejects at the deadline or when the connection breaks. */
export function httpRequest(port: number, path = '/', options: HttpRequestOptions = {}): Promise<HttpAnswer> {
  const { method = 'GET', headers = {}, body, host = '127.0.0.1', localAddress, socketPath } = options;
  const { deadlineMs = DEFAULT_DEADLINE_MS } = options;
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(deadlineMs);
    const outgoing = request(
      { host, localAddress, port, socketPath, path, method, headers, agent: false, signal },
      (incoming) => {
        let text = '';
        incoming.setEncoding('latin1');
        incoming.on('data', (chunk: string) => {
          text += chunk;
        });
        incoming.on('error', reject);
        incoming.on('end', () =>
          resolve({
            status: incoming.statusCode!,
            reason: incoming.statusMessage!,
            headers: incoming.headers,
            rawHeaders: incoming.rawHeaders,
            body: text,
            trailers: incoming.trailers,
          }),
        );
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
