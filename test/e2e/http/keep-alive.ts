// Many requests over few connections, for tests that count responses.

import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import type { Teardown } from '../harness/index.js';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A client with keep-alive, with at most `connections` connections, which are closed when the test ends. */
export class KeepAliveClient {
  readonly #agent: Agent;
  readonly #port: number;

  constructor(t: Teardown, port: number, connections: number) {
    this.#port = port;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
    t.teardown(() => this.#agent.destroy());
  }

  get(path: string, headers: OutgoingHttpHeaders = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      request({ host: '127.0.0.1', port: this.#port, path, headers, agent: this.#agent }, (incoming) => {
        let body = '';
        incoming.setEncoding('latin1');
        incoming.on('data', (chunk: string) => {
          body += chunk;
        });
        incoming.on('error', reject);
        incoming.on('end', () => resolve({ status: incoming.statusCode!, headers: incoming.headers, body }));
      })
        .on('error', reject)
        .end();
    });
  }

  /** Sends `count` requests for the same path, as many at a time as there are connections. */
  repeat(count: number, path: string, headers: OutgoingHttpHeaders = {}): Promise<Answer[]> {
    return Promise.all(Array.from({ length: count }, () => this.get(path, headers)));
  }
}

/** Counts the occurrences of each value. */
export function tally(values: Iterable<string>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}
