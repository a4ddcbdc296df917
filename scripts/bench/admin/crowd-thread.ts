// A thread of many clients that each request and read one response after the other, until they are stopped.

import { Agent, type IncomingMessage, request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

export interface Crowd {
  readonly port: number;
  readonly clients: number;
  /** Assigned to the clients in turn; each client repeats its own. */
  readonly asks: readonly Ask[];
}

export interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly body?: string;
  /** Each request uses a new connection. */
  readonly isAlone?: boolean;
}

export interface CrowdResult {
  /** Complete responses. */
  answers: number;
  bytes: number;
  /** Responses with a status other than 200. */
  refused: number;
  /** Connections that ended before the response. */
  failed: number;
}

const { port, clients, asks } = workerData as Crowd;
const agent = new Agent({ keepAlive: true, maxSockets: clients });
const result: CrowdResult = { answers: 0, bytes: 0, refused: 0, failed: 0 };
let isStopped = false;

function once({ method = 'GET', path, body = '', isAlone = false }: Ask): Promise<void> {
  return new Promise((resolve) => {
    const headers = body === '' ? {} : { 'content-type': 'application/x-www-form-urlencoded' };
    const asked = request(
      { host: '127.0.0.1', port, path, method, headers, agent: isAlone ? false : agent },
      (response: IncomingMessage) => {
        response.on('data', (chunk: Buffer) => {
          result.bytes += chunk.length;
        });
        response.on('end', () => {
          result.answers++;
          if (response.statusCode !== 200) result.refused++;
        });
        response.on('close', resolve);
      },
    );
    asked.on('error', () => {
      if (!isStopped) result.failed++;
      resolve();
    });
    asked.end(body);
  });
}

async function client(index: number): Promise<void> {
  while (!isStopped) await once(asks[index % asks.length]!);
}

for (let index = 0; index < clients; index++) void client(index);

parentPort!.once('message', () => {
  isStopped = true;
  agent.destroy();
  parentPort!.postMessage(result);
});
