// Packs lines into datagrams, one line each or as many as fit.

import type { LineWriter } from './line-sink.js';

/** Maximum payload of a UDP datagram over IPv4. */
const MAX_DATAGRAM_BYTES = 65_507;

/** Sends datagrams to one peer; drops those that it cannot send. */
export interface DatagramSocket {
  /** Called when a flush begins. Reopens a socket that has failed. */
  begin(): void;
  send(datagram: Buffer): void;
  /** Returns a promise to await before sending more, or undefined. */
  room(): Promise<void> | undefined;
  close(): void | Promise<void>;
}

export class DatagramWriter implements LineWriter {
  readonly #socket: DatagramSocket;
  readonly #maxBytes: number;
  #held = '';
  #heldBytes = 0;

  /** @param maxBytes of a datagram, except when a single line is longer; 0: each line is a datagram. */
  constructor(socket: DatagramSocket, maxBytes: number) {
    this.#socket = socket;
    this.#maxBytes = Math.min(maxBytes, MAX_DATAGRAM_BYTES);
  }

  begin(): void {
    this.#socket.begin();
  }

  line(text: string): void {
    if (this.#maxBytes === 0) {
      this.#socket.send(Buffer.from(text));
      return;
    }
    const bytes = Buffer.byteLength(text);
    if (this.#heldBytes > 0 && this.#heldBytes + 1 + bytes > this.#maxBytes) this.end();
    this.#held += this.#heldBytes > 0 ? `\n${text}` : text;
    this.#heldBytes += this.#heldBytes > 0 ? bytes + 1 : bytes;
  }

  room(): Promise<void> | undefined {
    return this.#socket.room();
  }

  end(): void {
    if (this.#heldBytes === 0) return;
    this.#socket.send(Buffer.from(this.#held));
    this.#held = '';
    this.#heldBytes = 0;
  }

  close(): void | Promise<void> {
    return this.#socket.close();
  }
}
