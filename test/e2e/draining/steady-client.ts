// Clients that repeat requests, each on one connection for as long as the server allows, and record every failure.

import { connect } from 'node:net';
import { BETWEEN_REQUESTS_MS, RawConnection, type Teardown, waitFor } from '../harness/index.js';

const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
/** Number of listen sockets of the listener: one for each of two workers. */
const SOCKETS = 2;

export class SteadyClient {
  /** For each response, whether it announced the close of its connection. */
  readonly closing: boolean[] = [];
  /** Unexpected events. */
  readonly failures: string[] = [];
  /** Whether connections are refused. */
  isRefused = false;
  readonly #port: number;
  #isEnding = false;
  #crossed = 0;
  /** The connection has had no response yet. */
  #isNew = true;
  #connection: RawConnection | undefined;

  private constructor(port: number) {
    this.#port = port;
  }

  static start(t: Teardown, port: number, count: number): SteadyClient[] {
    const clients = Array.from({ length: count }, () => new SteadyClient(port));
    const ends = clients.map((client) => client.#run());
    t.teardown(async () => {
      for (const client of clients) client.#isEnding = true;
      await Promise.all(ends);
    });
    return clients;
  }

  /** Resolves after `count` further responses, or when connections are refused. */
  async answers(count: number): Promise<void> {
    const wanted = this.closing.length + count;
    await waitFor(() => this.closing.length >= wanted || this.isRefused || this.failures.length > 0, {
      what: `${count} answers`,
    });
  }

  async #run(): Promise<void> {
    while (!this.#isEnding && !this.isRefused && this.failures.length === 0) {
      try {
        const mustBeRefused = this.#crossed === SOCKETS;
        this.#connection ??= await this.#open();
        if (mustBeRefused && !this.isRefused) throw new Error('reset, though the listener is still open');
        if (this.#connection !== undefined) await this.#ask(this.#connection);
      } catch (error) {
        this.failures.push(String(error));
      }
      await new Promise((resolve) => setTimeout(resolve, BETWEEN_REQUESTS_MS));
    }
    this.#connection?.destroy();
  }

  #open(): Promise<RawConnection | undefined> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port: this.#port, host: '127.0.0.1', allowHalfOpen: true });
      socket.once('connect', () => {
        socket.removeAllListeners('error');
        this.#isNew = true;
        resolve(new RawConnection(socket));
      });
      socket.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNREFUSED') this.isRefused = true;
        else if (!this.#mayHaveCrossed()) return reject(error);
        resolve(undefined);
      });
    });
  }

  /**
   * The kernel resets an unaccepted connection when its handshake crosses the close of the listening socket. That can happen
   * once for each socket of the listener; the next attempt is refused.
   */
  #mayHaveCrossed(): boolean {
    this.#crossed++;
    this.#connection?.destroy();
    this.#connection = undefined;
    return this.#crossed <= SOCKETS;
  }

  /** Sends one request and reads the whole response; an announced close must be followed by an orderly one. */
  async #ask(connection: RawConnection): Promise<void> {
    connection.write(REQUEST);
    const head = await connection.readUntil('\r\n\r\n').catch((error: unknown) => {
      if (!this.#isNew || connection.closed !== 'reset' || connection.received !== '' || !this.#mayHaveCrossed())
        throw error;
    });
    if (head === undefined) return;
    this.#isNew = false;
    if (!head.startsWith('HTTP/1.1 200')) throw new Error(head);
    await connection.read(Number(/content-length: (\d+)/i.exec(head)![1]));
    const closes = /\r\nconnection: close\r\n/i.test(head);
    if (closes) {
      const { closed, text } = await connection.readToEnd();
      if (closed !== 'end' || text !== '') throw new Error(`${closed} after '${text}'`);
      connection.destroy();
      this.#connection = undefined;
    }
    this.closing.push(closes);
  }
}
