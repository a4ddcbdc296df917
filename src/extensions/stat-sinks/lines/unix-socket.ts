// Datagrams to a Unix socket, by the unix-dgram package, which is loaded when the first one is wanted. It works on the
// primary thread only.

import { createRequire } from 'node:module';
import { errorName } from '../../../common/errno.js';
import type { Condition } from '../condition.js';
import type { DatagramSocket } from './datagram-writer.js';

/** What is used of the package, which brings no types. */
interface UnixDatagrams {
  createSocket(type: 'unix_dgram'): UnixDatagramSocket;
}

interface UnixDatagramSocket {
  on(event: 'error', listener: (error: Error & { readonly errno?: number }) => void): void;
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
  readonly #path: string;
  readonly #condition: Condition;
  #socket: UnixDatagramSocket | undefined;

  constructor(path: string, condition: Condition) {
    this.#path = path;
    this.#condition = condition;
  }

  begin(): void {
    this.#condition.begin();
    if (this.#socket !== undefined) return;
    packageOnce ??= createRequire(import.meta.url)('unix-dgram') as UnixDatagrams;
    const socket = packageOnce.createSocket('unix_dgram');
    this.#socket = socket;
    socket.on('error', (error) => this.#failed(error, 0));
    socket.connect(this.#path);
  }

  send(datagram: Buffer): void {
    if (this.#socket === undefined) return this.#condition.fails('there is no connection', 1);
    this.#socket.send(datagram, (error) => {
      if (error === undefined) this.#condition.sent();
      else if (error.code === CONGESTION) this.#condition.fails('its queue is full');
      else this.#failed(error, 1);
    });
  }

  close(): void {
    this.#socket?.close();
    this.#socket = undefined;
  }

  /** The receiver is gone, or not yet there: the next flush tries to reach it. */
  #failed(error: Error & { readonly errno?: number }, lost: number): void {
    this.#condition.fails(reasonOf(error), lost);
    this.close();
  }
}

function reasonOf({ errno, message }: Error & { readonly errno?: number }): string {
  if (errno === undefined) return message;
  return errorName(-errno);
}
