// Reads a request's body completely, up to a limit for the body and one for all bodies together.

import type { AdminIncoming } from './exchange.js';

/** Limit of bytes buffered at a time. */
export class ByteBudget {
  #left: number;

  constructor(max: number) {
    this.#left = max;
  }

  /** Takes `bytes` from the budget; returns false if it has less. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  release(bytes: number): void {
    this.#left += bytes;
  }
}

/** The answer for a body that was not kept. */
export interface BodyRefusal {
  readonly status: number;
  readonly body: string;
}

export class ReceivedBody {
  /** The complete body; undefined until it was received, and if it was not kept. */
  bytes: Buffer | undefined;
  refusal: BodyRefusal | undefined;
  readonly #budget: ByteBudget;
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #length = 0;
  /** Bytes taken from the budget. */
  #taken = 0;

  constructor(budget: ByteBudget, maxBytes: number) {
    this.#budget = budget;
    this.#maxBytes = maxBytes;
  }

  /**
   * Resolves with true when the body was received completely, with false if the client disconnects before. A body that is not
   * kept is read and dropped, so that a client that sends first and reads later receives the refusal.
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
      // No effect after the end.
      request.on('close', () => resolve(false));
    });
  }

  /** Releases the body's share of the budget. */
  release(): void {
    this.#chunks = [];
    this.#budget.release(this.#taken);
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
      : { status: 503, body: 'Too many request bodies are being received: retry later.\n' };
    this.release();
  }
}
