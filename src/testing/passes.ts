// The two directions of a tested request: Baton's own passes, which end at the test's host and client.

import type { DataStatus, HeadersStatus, HttpFilter } from '../http/filters/filter.js';
import { FilterPass } from '../http/filters/filter-pass.js';
import type { HeaderBlock } from '../http/headers/header-block.js';
import type { Memory } from '../io/memory.js';

/** The end of a pass. */
export interface Receiver {
  onHead(head: HeaderBlock, endStream: boolean): void;
  onData(offset: number, length: number, endStream: boolean): void;
  onTrailers(trailers: HeaderBlock): void;
  /** A filter would hold more than the limit. */
  onTooLarge(): void;
}

abstract class TestPass extends FilterPass {
  readonly #receiver: Receiver;

  constructor(filters: readonly HttpFilter[], memory: Memory, limit: number, receiver: Receiver) {
    super(filters, memory, limit);
    this.#receiver = receiver;
  }

  protected passHeaders(head: HeaderBlock, endStream: boolean): void {
    this.#receiver.onHead(head, endStream);
  }

  protected passData(offset: number, length: number, endStream: boolean): void {
    this.#receiver.onData(offset, length, endStream);
  }

  protected passTrailers(trailers: HeaderBlock): void {
    this.#receiver.onTrailers(trailers);
  }

  protected tooLarge(): void {
    this.#receiver.onTooLarge();
  }

  protected noRoom(): void {
    throw new Error('the messages of a test are too large');
  }
}

export class RequestPass extends TestPass {
  protected callHeaders(filter: HttpFilter, head: HeaderBlock, endStream: boolean): HeadersStatus {
    return filter.decodeHeaders!(head, endStream);
  }

  protected callData(filter: HttpFilter, offset: number, length: number, endStream: boolean): DataStatus {
    return filter.decodeData!(offset, length, endStream);
  }

  protected callTrailers(filter: HttpFilter, trailers: HeaderBlock): HeadersStatus {
    return filter.decodeTrailers!(trailers);
  }
}

export class ResponsePass extends TestPass {
  protected callHeaders(filter: HttpFilter, head: HeaderBlock, endStream: boolean): HeadersStatus {
    return filter.encodeHeaders!(head, endStream);
  }

  protected callData(filter: HttpFilter, offset: number, length: number, endStream: boolean): DataStatus {
    return filter.encodeData!(offset, length, endStream);
  }

  protected callTrailers(filter: HttpFilter, trailers: HeaderBlock): HeadersStatus {
    return filter.encodeTrailers!(trailers);
  }
}
