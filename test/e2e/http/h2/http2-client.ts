// Clients of HTTP/2 for tests: Node's, and curl.

import { spawn } from 'node:child_process';
import { type ClientHttp2Session, connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';
import type { Teardown } from '../../harness/index.js';

export interface Http2Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly trailers: IncomingHttpHeaders;
  /** The code of RST_STREAM if the response is incomplete, or else 0. */
  readonly resetCode: number;
}

/** Opens a connection with prior knowledge. */
export function openSession(t: Teardown, port: number): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on('error', () => {});
  t.teardown(() => session.destroy());
  return session;
}

export interface Http2Request {
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  readonly trailers?: OutgoingHttpHeaders;
}

/** Sends one request and reads its response. Rejects if the connection breaks before the stream ends. */
export function exchange(session: ClientHttp2Session, path: string, request: Http2Request = {}): Promise<Http2Answer> {
  const { headers = {}, body, trailers } = request;
  return new Promise((resolve, reject) => {
    const hasBody = body !== undefined || trailers !== undefined;
    const stream = session.request(
      { ':path': path, ...headers },
      { endStream: !hasBody, waitForTrailers: trailers !== undefined },
    );
    const answer = { status: 0, headers: {}, body: '', trailers: {}, resetCode: 0 };
    stream.setEncoding('latin1');
    stream.on('response', (found) => Object.assign(answer, { status: found[':status'], headers: found }));
    stream.on('trailers', (found) => Object.assign(answer, { trailers: found }));
    stream.on('wantTrailers', () => stream.sendTrailers(trailers!));
    stream.on('data', (text: string) => {
      answer.body += text;
    });
    stream.on('error', () => {});
    stream.on('close', () => {
      if (session.destroyed && answer.status === 0 && stream.rstCode === 0) reject(new Error('the connection is lost'));
      else resolve({ ...answer, resetCode: stream.rstCode ?? 0 });
    });
    if (hasBody) stream.end(body);
  });
}

/** Sends one request on a connection of its own. */
export async function request2(t: Teardown, port: number, path: string, request?: Http2Request): Promise<Http2Answer> {
  const session = openSession(t, port);
  try {
    return await exchange(session, path, request);
  } finally {
    session.close();
  }
}

/** Runs curl with these arguments. Returns what it prints. */
export function curl(...args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('curl', ['--silent', '--show-error', '--max-time', '20', ...args]);
    let text = '';
    child.stdout.setEncoding('latin1').on('data', (part: string) => {
      text += part;
    });
    child.stderr.setEncoding('latin1').on('data', (part: string) => {
      text += part;
    });
    child.on('error', reject);
    child.on('close', () => resolve(text));
  });
}
