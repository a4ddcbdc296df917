// Packs lines into datagrams: one line each, or as many as fit.

import type { LineWriter } from './line-sink.js';

/** UDP has no larger ones; what would be larger is not sent at all. */
const LARGEST = 65_507;

/** Sends datagrams to one peer; what it cannot send is lost. */
export interface DatagramSocket {
  /** A flush begins: a socket that has failed may be made anew. */
  begin(): void;
  send(datagram: Buffer): void;
  /** What to wait for before more is sent; undefined when there is nothing. */
  room(): Promise<void> | undefined;
  close(): void | Promise<void>;
}

export class DatagramWriter implements LineWriter {
  readonly #socket: DatagramSocket;
  readonly #maxBytes: number;
  #held = '';
  #heldBytes = 0;

  /** @param maxBytes of a datagram; one line may be longer. 0: every line is a datagram. */
  constructor(socket: DatagramSocket, maxBytes: number) {
    this.#socket = socket;
    this.#maxBytes = Math.min(maxBytes, LARGEST);
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
