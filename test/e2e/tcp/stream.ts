// One end of a proxied TCP connection: counts and fingerprints received bytes, and records how the peer closed.

import { createHash, randomBytes } from 'node:crypto';
import { connect, createServer, type NetConnectOpts, type Socket } from 'node:net';
import { type HowClosed, type Teardown, waitFor } from '../harness/index.js';

export class Stream {
  readonly socket: Socket;
  /** Bytes received so far. */
  length = 0;
  /** The start of the received bytes, as Latin-1 text. */
  head = '';
  closed: HowClosed = 'open';
  readonly #hash = createHash('sha256');

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => {
      this.length += chunk.length;
      this.#hash.update(chunk);
      if (this.head.length < HEAD_LENGTH) this.head += chunk.toString('latin1', 0, HEAD_LENGTH);
    });
    socket.on('end', () => {
      this.closed = 'end';
    });
    socket.on('error', () => {
      this.closed = 'reset';
    });
  }

  /** Resolves when the kernel has accepted all bytes. */
  write(bytes: Uint8Array | string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.socket.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Half-closes the connection. */
  end(): void {
    this.socket.end();
  }

  reset(): void {
    this.socket.resetAndDestroy();
  }

  async receives(length: number): Promise<void> {
    await waitFor(() => this.length >= length || this.closed !== 'open', { what: `${length} bytes` });
    if (this.length < length) throw new Error(`closed (${this.closed}) after ${this.length} of ${length} bytes`);
  }

  /** Waits until the peer has closed; returns how. */
  async isClosed(): Promise<HowClosed> {
    await waitFor(() => this.closed !== 'open', { what: 'the end of the connection' });
    return this.closed;
  }

  /** Returns the fingerprint of the received bytes; ends the counting. */
  fingerprint(): string {
    return this.#hash.digest('hex');
  }
}

const HEAD_LENGTH = 4096;

export function fingerprint(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export { randomBytes };

/** Connects to a port of 127.0.0.1, or to `to`. The connection is destroyed when the test ends. */
export async function openStream(t: Teardown, to: number | NetConnectOpts): Promise<Stream> {
  const options: NetConnectOpts = typeof to === 'number' ? { port: to, host: '127.0.0.1' } : to;
  const socket = connect({ ...options, allowHalfOpen: true });
  t.teardown(() => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', () => resolve());
    socket.once('error', reject);
  });
  return new Stream(socket);
}

/** A server that only accepts connections, on which a test reads and writes. */
export interface Peers {
  port: number;
  /** All connections so far, in order of arrival. */
  streams: Stream[];
  /** Returns the first connection that no earlier call has returned. */
  next(): Promise<Stream>;
}

/** Listens on a port that the kernel chooses, or on a Unix socket. */
export async function startPeers(t: Teardown, listenOn: { path?: string; host?: string } = {}): Promise<Peers> {
  const streams: Stream[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => streams.push(new Stream(socket)));
  t.teardown(async () => {
    for (const { socket } of streams) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    const { path, host = '127.0.0.1' } = listenOn;
    if (path === undefined) server.listen(0, host, resolve);
    else server.listen(path, resolve);
  });
  let taken = 0;
  const address = server.address();
  return {
    port: address !== null && typeof address === 'object' ? address.port : 0,
    streams,
    next: async () => {
      const index = taken++;
      await waitFor(() => streams.length > index, { what: 'a connection at the upstream' });
      return streams[index]!;
    },
  };
}
