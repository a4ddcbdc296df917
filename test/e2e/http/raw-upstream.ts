// A host that reads requests and answers with arbitrary bytes, or not at all.

import type { Socket } from 'node:net';
import { startTcpUpstream, type Teardown, type Upstream } from '../harness/index.js';
import { dechunk } from './message.js';

export interface RawRequest {
  /** Counts from 1 over all connections. */
  readonly number: number;
  readonly method: string;
  readonly path: string;
  /** Request line and header lines, without the empty line. */
  readonly head: string;
  readonly socket: Socket;
}

export interface RawUpstream extends Upstream {
  /** All requests so far. */
  readonly requests: readonly RawRequest[];
}

/**
 * Starts the host. It calls `answer` when a request's header section is complete, and skips its body; the socket's 'data'
 * events have all bytes.
 */
export async function startRawUpstream(t: Teardown, answer: (request: RawRequest) => void): Promise<RawUpstream> {
  const requests: RawRequest[] = [];
  const upstream = await startTcpUpstream(t, (socket) => {
    let received = '';
    let bodyRemaining = 0;
    let isChunked = false;
    socket.setEncoding('latin1');
    socket.on('end', () => socket.end());
    socket.on('data', (chunk: string) => {
      received += chunk;
      for (;;) {
        if (isChunked) {
          const { isComplete, rest } = dechunk(received);
          if (!isComplete) return;
          received = rest;
          isChunked = false;
        }
        const skipped = Math.min(bodyRemaining, received.length);
        bodyRemaining -= skipped;
        received = received.slice(skipped);
        const end = received.indexOf('\r\n\r\n');
        if (end < 0) return;
        const head = received.slice(0, end);
        received = received.slice(end + 4);
        bodyRemaining = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
        isChunked = /\r\ntransfer-encoding: *chunked/i.test(head);
        const [method = '', path = ''] = head.split(' ', 2);
        const request = { number: requests.length + 1, method, path, head, socket };
        requests.push(request);
        answer(request);
      }
    });
  });
  return { ...upstream, requests };
}

/** Returns a complete response with a content-length. */
export function response(status: number, body = '', headers: Record<string, string> = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Whatever\r\n${lines.join('')}content-length: ${body.length}\r\n\r\n${body}`;
}
