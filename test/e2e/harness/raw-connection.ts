// A TCP connection to a server: tests write its bytes and read the server's.

import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import type { Teardown } from './environment.js';
import { DEFAULT_DEADLINE_MS, withDeadline } from './wait-for.js';

/** How the peer closed: 'end' is an orderly FIN, 'reset' an RST. */
export type HowClosed = 'open' | 'end' | 'reset';

export interface RawAnswer {
  /** Latin-1, so that every byte is one character. */
  text: string;
  closed: HowClosed;
}

export interface ExchangeOptions {
  /** Stops reading when the text matches; without it, reading continues until the peer closes. */
  until?: RegExp;
  deadlineMs?: number;
  host?: string;
}

export class RawConnection {
  readonly socket: Socket;
  /** The received bytes that no read has consumed. */
  received = '';
  closed: HowClosed = 'open';
  readonly #waiting = new Set<() => void>();

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.setNoDelay(true);
    socket.on('data', (chunk: string) => {
      this.received += chunk;
      this.#changed();
    });
    socket.on('end', () => {
      this.closed = 'end';
      this.#changed();
    });
    socket.on('error', () => {
      this.closed = 'reset';
      this.#changed();
    });
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  /** Reads and discards all further bytes. */
  discard(): void {
    this.socket.removeAllListeners('data');
    this.socket.resume();
  }

  /** Half-closes the connection: the peer's bytes can still be read. */
  end(): void {
    this.socket.end();
  }

  /** Consumes and returns the bytes up to the end of the first match. Throws when the peer closes before it. */
  async readUntil(pattern: RegExp | string, deadlineMs = DEFAULT_DEADLINE_MS): Promise<string> {
    const expression = typeof pattern === 'string' ? new RegExp(escapeRegExp(pattern)) : pattern;
    await this.#waitUntil(() => expression.test(this.received), `bytes matching ${expression}`, deadlineMs);
    const match = expression.exec(this.received);
    if (match === null) throw new Error(`peer closed (${this.closed}) after ${JSON.stringify(this.received)}`);
    return this.#take(match.index + match[0].length);
  }

  /** Consumes and returns exactly `length` bytes. Throws when the peer closes before that. */
  async read(length: number, deadlineMs = DEFAULT_DEADLINE_MS): Promise<string> {
    await this.#waitUntil(() => this.received.length >= length, `${length} bytes`, deadlineMs);
    if (this.received.length < length) {
      throw new Error(`peer closed (${this.closed}) after ${this.received.length} of ${length} bytes`);
    }
    return this.#take(length);
  }

  /** Waits until the peer has closed, then returns the remaining bytes. */
  async readToEnd(deadlineMs = DEFAULT_DEADLINE_MS): Promise<RawAnswer> {
    await this.#waitUntil(() => false, 'the end of the connection', deadlineMs);
    return { text: this.#take(this.received.length), closed: this.closed };
  }

  /** Ends the connection with an RST. */
  reset(): void {
    this.socket.resetAndDestroy();
  }

  destroy(): void {
    this.socket.destroy();
  }

  #take(length: number): string {
    const taken = this.received.slice(0, length);
    this.received = this.received.slice(length);
    return taken;
  }

  #changed(): void {
    for (const wake of this.#waiting) wake();
  }

  async #waitUntil(condition: () => boolean, what: string, deadlineMs: number): Promise<void> {
    if (condition() || this.closed !== 'open') return;
    let wake = (): void => {};
    const done = new Promise<void>((resolve) => {
      wake = () => {
        if (condition() || this.closed !== 'open') resolve();
      };
      this.#waiting.add(wake);
    });
    try {
      await withDeadline(done, what, deadlineMs);
    } catch (error) {
      throw new Error(`received only ${JSON.stringify(this.received.slice(0, 2000))}`, { cause: error });
    } finally {
      this.#waiting.delete(wake);
    }
  }
}

/**
 * Uses up the spare descriptors of a process down to the reserve that its listeners keep, with connections to its admin
 * interface.
 */
export async function takeReserve(t: Teardown, baton: { pid: number; adminPort: number }, limit: number) {
  const open = () => readdirSync(`/proc/${baton.pid}/fd`).length;
  const connections: RawConnection[] = [];
  while (open() < limit) {
    const connection = await connectRaw(t, baton.adminPort);
    // A response proves that the server has accepted this connection, so its descriptor counts from now on.
    connection.write('GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await connection.readUntil('\r\n\r\n');
    connections.push(connection);
  }
  return connections;
}

/** Opens a connection to a port of 127.0.0.1 that is destroyed when the test ends. */
export async function connectRaw(t: Teardown, port: number, host = '127.0.0.1'): Promise<RawConnection> {
  const socket = await openSocket(port, host);
  t.teardown(() => socket.destroy());
  return new RawConnection(socket);
}

/** Sends bytes (or several pieces, each in a separate write) and returns the response. */
export async function rawExchange(
  port: number,
  bytes: string | Uint8Array | readonly (string | Uint8Array)[],
  { until, deadlineMs = DEFAULT_DEADLINE_MS, host = '127.0.0.1' }: ExchangeOptions = {},
): Promise<RawAnswer> {
  const connection = new RawConnection(await openSocket(port, host));
  try {
    const pieces = typeof bytes === 'string' || bytes instanceof Uint8Array ? [bytes] : bytes;
    for (const piece of pieces) connection.write(piece);
    if (until === undefined) return await connection.readToEnd(deadlineMs);
    return { text: await connection.readUntil(until, deadlineMs), closed: connection.closed };
  } finally {
    connection.destroy();
  }
}

function openSocket(port: number, host: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host, allowHalfOpen: true }, () => {
      socket.removeListener('error', reject);
      resolve(socket);
    });
    socket.once('error', reject);
  });
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
