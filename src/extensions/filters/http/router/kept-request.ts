// A request as tries send it: its head, and what of its body and trailers has not been sent, or another try would need.

import type { RequestEncoder } from '../../../../http/codec/streams.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import { HeldBytes } from '../../../../io/held-bytes.js';
import type { Memory } from '../../../../io/memory.js';

/** A try that sends it. */
export interface Sender {
  /** Undefined: it is over. */
  readonly encoder: RequestEncoder | undefined;
}

export class KeptRequest {
  headers!: HeaderBlock;
  /** All of it has come. */
  isComplete = false;
  readonly #body: HeldBytes;
  #trailers: HeaderBlock | undefined;

  constructor(memory: Memory) {
    this.#body = new HeldBytes(memory);
  }

  /** Nothing is kept of the one before. */
  begin(headers: HeaderBlock, isComplete: boolean): void {
    this.headers = headers;
    this.isComplete = isComplete;
  }

  /** Bytes of the body that are kept. */
  get bytes(): number {
    return this.#body.bytes;
  }

  /** False when memory is short. */
  keepBody(offset: number, length: number): boolean {
    return this.#body.append(offset, length);
  }

  /** False when memory is short. */
  keepTrailers(trailers: HeaderBlock): boolean {
    if (!trailers.hold()) return false;
    this.#trailers = trailers;
    return true;
  }

  /** No other try is to send the body. */
  dropBody(): void {
    this.#body.clear();
  }

  drop(): void {
    this.#body.clear();
    this.#trailers?.drop();
    this.#trailers = undefined;
  }

  /**
   * Sends what there is of it to `encoder`, as long as that is the one of `current`; the head of a request that upgrades is not its end.
   * Returns whether there is more to come on `encoder`, or at least its end.
   */
  sendTo(encoder: RequestEncoder, current: Sender, isUpgrade: boolean): boolean {
    const { isComplete } = this;
    const trailers = this.#trailers;
    let left = this.#body.bytes;
    const endsWithHead = isComplete && left === 0 && trailers === undefined && !isUpgrade;
    encoder.headers(this.headers, endsWithHead);
    if (endsWithHead) return false;
    if (left > 0) {
      this.#body.forEach((offset, length) => {
        left -= length;
        const endStream = isComplete && left === 0 && trailers === undefined;
        if (current.encoder === encoder) encoder.data(offset, length, endStream);
      });
    }
    if (current.encoder !== encoder) return false;
    if (trailers !== undefined) encoder.trailers(trailers);
    return true;
  }
}
