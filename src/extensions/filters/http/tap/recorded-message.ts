// The recorded part of a request or response, until its trace is sent.

import type { ActiveTap } from './active-tap.js';
import type { TracedBody, TracedHeader, TracedMessage } from './traces/trace.js';

export class RecordedMessage {
  headers: readonly TracedHeader[] | undefined;
  trailers: readonly TracedHeader[] | undefined;
  receivedMs: number | undefined;
  readonly #tap: ActiveTap;
  /** Maximum bytes of the body that are kept. */
  readonly #limit: number;
  #pieces: Uint8Array[] = [];
  #length = 0;
  #hasBody = false;
  #isTruncated = false;

  constructor(tap: ActiveTap, limit: number) {
    this.#tap = tap;
    this.#limit = limit;
  }

  /** Copies the bytes up to the limit. */
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

  /** Undefined if there was none. */
  get body(): TracedBody | undefined {
    return this.#hasBody ? { bytes: Buffer.concat(this.#pieces), isTruncated: this.#isTruncated } : undefined;
  }

  /** Undefined if no headers were received. */
  get traced(): TracedMessage | undefined {
    const { headers, body, trailers = [], receivedMs } = this;
    return headers && { headers, body, trailers, receivedMs };
  }

  /** Releases everything. */
  clear(): void {
    this.#tap.release(this.#length);
    this.headers = this.trailers = undefined;
    this.#pieces = [];
    this.#length = 0;
    this.#hasBody = this.#isTruncated = false;
  }
}
