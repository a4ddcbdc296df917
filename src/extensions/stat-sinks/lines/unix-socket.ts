// Sends datagrams to a Unix socket with the unix-dgram package, which is loaded for the first such sink. The package works only
// on the primary thread.

import { errorName, loadNative } from '../../sdk.js';
import type { Condition } from '../condition.js';
import { Backlog } from './backlog.js';
import type { DatagramSocket } from './datagram-writer.js';

/** The used part of the package, which has no types. */
interface UnixDatagrams {
  createSocket(type: 'unix_dgram'): UnixDatagramSocket;
}

interface UnixDatagramSocket {
  on(event: 'error', listener: (error: Error & { readonly errno?: number }) => void): void;
  /** Emitted when a full receive queue has room again. */
  on(event: 'writable', listener: () => void): void;
  connect(path: string): void;
  /** Calls back before it returns. A full receive queue is an error with code 1. */
  send(
    datagram: Buffer,
    callback: (error?: Error & { readonly errno?: number; readonly code?: unknown }) => void,
  ): void;
  close(): void;
}

const CONGESTION = 1;

let packageOnce: UnixDatagrams | undefined;

export class UnixSocket implements DatagramSocket {
  readonly #datagrams: UnixDatagrams;
  readonly #path: string;
  readonly #condition: Condition;
  /** Datagrams that wait for room in the receiver's queue, which holds ten by default (net.unix.max_dgram_qlen). */
  #waiting: Buffer[] = [];
  readonly #backlog = new Backlog();
  #socket: UnixDatagramSocket | undefined;

  /** Throws a BatonError if the package cannot be loaded. */
  constructor(path: string, condition: Condition) {
    packageOnce ??= loadNative('unix-dgram') as UnixDatagrams;
    this.#datagrams = packageOnce;
    this.#path = path;
    this.#condition = condition;
  }

  begin(): void {
    this.#condition.begin();
    this.#backlog.begin();
    if (this.#socket !== undefined) return;
    const socket = this.#datagrams.createSocket('unix_dgram');
    this.#socket = socket;
    socket.on('error', (error) => this.#failed(error, 0));
    socket.on('writable', () => this.#pump());
    socket.connect(this.#path);
  }

  send(datagram: Buffer): void {
    if (this.#socket === undefined) return this.#condition.fails('there is no connection', 1);
    if (!this.#backlog.add(datagram)) return this.#condition.fails('its queue is full');
    this.#waiting.push(datagram);
    // With more than one waiting, the 'writable' event resumes sending.
    if (this.#waiting.length === 1) this.#pump();
  }

  room(): Promise<void> | undefined {
    return this.#backlog.room();
  }

  async close(): Promise<void> {
    await this.#backlog.drained();
    this.#close();
  }

  /** Sends waiting datagrams until the receiver's queue is full; the 'writable' event resumes it. */
  #pump(): void {
    while (this.#waiting.length > 0 && this.#sendOne(this.#waiting[0]!)) this.#waiting.shift();
  }

  #sendOne(datagram: Buffer): boolean {
    let isSent = false;
    this.#socket?.send(datagram, (error) => {
      if (error === undefined) {
        isSent = true;
        this.#backlog.remove(datagram);
        this.#condition.sent();
      } else if (error.code !== CONGESTION) this.#failed(error, this.#waiting.length);
    });
    return isSent;
  }

  /** Called when the receiver is not reachable. The next flush reconnects. */
  #failed(error: Error & { readonly errno?: number }, lost: number): void {
    this.#condition.fails(reasonOf(error), lost);
    this.#waiting = [];
    this.#backlog.clear();
    this.#close();
  }

  #close(): void {
    this.#socket?.close();
    this.#socket = undefined;
  }
}

function reasonOf({ errno, message }: Error & { readonly errno?: number }): string {
  if (errno === undefined) return message;
  return errorName(-errno);
}
