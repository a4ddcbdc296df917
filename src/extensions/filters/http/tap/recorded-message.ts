// What is kept of one message, a request or a response, until its trace is sent.

import type { ActiveTap } from './active-tap.js';
import type { TracedBody, TracedHeader, TracedMessage } from './traces/trace.js';

export class RecordedMessage {
  headers: readonly TracedHeader[] | undefined;
  trailers: readonly TracedHeader[] | undefined;
  receivedMs: number | undefined;
  readonly #tap: ActiveTap;
  /** Most bytes of the body that are kept. */
  readonly #limit: number;
  #pieces: Uint8Array[] = [];
  #length = 0;
  #hasBody = false;
  #isTruncated = false;

  constructor(tap: ActiveTap, limit: number) {
    this.#tap = tap;
    this.#limit = limit;
  }

  /** Copies as much as is to be kept. */
  addBody(bytes: Uint8Array): void {
    this.#hasBody = true;
    const length = Math.min(bytes.length, this.#limit - this.#length);
    if (length < bytes.length) this.#isTruncated = true;
    if (length === 0) return;
    if (!this.#tap.tryHold(length)) {
      this.#isTruncated = true;
      return;
    }
    this.#pieces.push(bytes.slice(0, length));
    this.#length += length;
  }

  /** Undefined when none came. */
  get body(): TracedBody | undefined {
    return this.#hasBody ? { bytes: Buffer.concat(this.#pieces), isTruncated: this.#isTruncated } : undefined;
  }

  /** Undefined when not even headers came. */
  get traced(): TracedMessage | undefined {
    const { headers, body, trailers = [], receivedMs } = this;
    return headers && { headers, body, trailers, receivedMs };
  }

  /** Forgets everything. */
  clear(): void {
    this.#tap.release(this.#length);
    this.headers = this.trailers = undefined;
    this.#pieces = [];
    this.#length = 0;
    this.#hasBody = this.#isTruncated = false;
  }
}
