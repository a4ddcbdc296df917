// A request's body, whole, as long as neither it nor all bodies together are too long.

import type { AdminIncoming } from './exchange.js';

/** Bytes that may be kept at a time. */
export class ByteBudget {
  #left: number;

  constructor(max: number) {
    this.#left = max;
  }

  /** Takes some if there are as many. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#left += bytes;
  }
}

/** Why a body was not kept. */
export interface BodyRefusal {
  readonly status: number;
  readonly body: string;
}

export class ReceivedBody {
  /** All of it; undefined before it is there, and when it was not kept. */
  bytes: Buffer | undefined;
  refusal: BodyRefusal | undefined;
  readonly #budget: ByteBudget;
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #length = 0;
  /** Of the budget. */
  #taken = 0;

  constructor(budget: ByteBudget, maxBytes: number) {
    this.#budget = budget;
    this.#maxBytes = maxBytes;
  }

  /**
   * Resolves with whether all of it has come. What is not kept is read and dropped, so that a client that sends first and reads
   * afterwards sees the refusal. Resolves with false when the client leaves before the end.
   */
  read(request: AdminIncoming): Promise<boolean> {
    if (request.destroyed) return Promise.resolve(false);
    return new Promise((resolve) => {
      request.on('data', (chunk: Buffer) => this.#take(chunk));
      request.on('end', () => {
        if (this.refusal === undefined) this.bytes = Buffer.concat(this.#chunks);
        resolve(true);
      });
      request.on('error', () => resolve(false));
      // After the end it changes nothing.
      request.on('close', () => resolve(false));
    });
  }

  /** It is not needed any more. */
  release(): void {
    this.#chunks = [];
    this.#budget.giveBack(this.#taken);
    this.#taken = 0;
  }

  #take(chunk: Buffer): void {
    if (this.refusal !== undefined) return;
    this.#length += chunk.length;
    const isTooLong = this.#length > this.#maxBytes;
    if (!isTooLong && this.#budget.take(chunk.length)) {
      this.#taken += chunk.length;
      this.#chunks.push(chunk);
      return;
    }
    this.refusal = isTooLong
      ? { status: 413, body: `The body is larger than ${this.#maxBytes} bytes.\n` }
      : { status: 503, body: 'The bodies of other requests take all the room that there is: send it again later.\n' };
    this.release();
  }
}
