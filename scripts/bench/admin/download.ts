// A thread that reads one response to its end, so that it does not delay the latency measurement.

import { request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

export interface Download {
  port: number;
  path: string;
}

export interface Downloaded {
  status: number;
  ms: number;
  bytes: number;
}

const { port, path } = workerData as Download;
const begun = performance.now();
request({ host: '127.0.0.1', port, path }, (response) => {
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  response.on('end', () => {
    const answer: Downloaded = { status: response.statusCode ?? 0, ms: performance.now() - begun, bytes };
    parentPort!.postMessage(answer);
  });
}).end();
