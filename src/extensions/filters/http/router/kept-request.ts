// A request as tries send it: its head, and the part of its body and trailers that is unsent or that a retry would need.

import type { RequestEncoder } from '../../../../http/codec/streams.js';
import type { RequestBody } from '../../../../http/filters/filter.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import { HeldBytes } from '../../../../io/held-bytes.js';
import type { Memory } from '../../../../io/memory.js';

/** A try that sends the request. */
export interface Sender {
  /** Undefined: the try has ended. */
  readonly encoder: RequestEncoder | undefined;
  /** Called before a part of the body is sent. */
  bodySent(length: number): void;
}

export class KeptRequest {
  headers!: HeaderBlock;
  /** The request was received completely. */
  isComplete = false;
  #body: HeldBytes;
  readonly #memory: Memory;
  #trailers: HeaderBlock | undefined;

  constructor(memory: Memory) {
    this.#memory = memory;
    this.#body = new HeldBytes(memory);
  }

  /** Begins a request. Nothing is kept of the previous one. */
  begin(headers: HeaderBlock, isComplete: boolean): void {
    this.headers = headers;
    this.isComplete = isComplete;
  }

  /** Bytes of the body that are kept. */
  get bytes(): number {
    return this.#body.bytes;
  }

  /** Nothing is kept but the head. */
  get isHeadOnly(): boolean {
    return this.#body.bytes === 0 && this.#trailers === undefined;
  }

  /** Calls `visit` with each part of the body that is kept. */
  forEachPart(visit: (offset: number, length: number) => void): void {
    this.#body.forEach(visit);
  }

  /** Returns false when memory is short. */
  keepBody(offset: number, length: number): boolean {
    return this.#body.append(offset, length);
  }

  /** Returns false when memory is short. */
  keepTrailers(trailers: HeaderBlock): boolean {
    if (!trailers.hold()) return false;
    this.#trailers = trailers;
    return true;
  }

  /** Called when no further try will send the body. */
  dropBody(): void {
    this.#body.clear();
  }

  /** Returns what is kept, which belongs to the caller from then on. */
  take(): RequestBody {
    const taken = { bytes: this.#body, trailers: this.#trailers };
    this.#body = new HeldBytes(this.#memory);
    this.#trailers = undefined;
    return taken;
  }

  drop(): void {
    this.#body.clear();
    this.#trailers?.drop();
    this.#trailers = undefined;
  }

  /**
   * Sends the kept request to `encoder`, as long as that is the encoder of `current`. The head of an upgrade request does not end
   * the stream. Returns whether the rest of the request, or its end, is still to be sent.
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
        if (current.encoder !== encoder) return;
        current.bodySent(length);
        encoder.data(offset, length, endStream);
      });
    }
    if (current.encoder !== encoder) return false;
    if (trailers !== undefined) encoder.trailers(trailers);
    return true;
  }
}
