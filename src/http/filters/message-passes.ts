// The passes of a request and of its response through the filters of one chain. They differ in the callbacks of the filters.

import type { Memory } from '../../io/memory.js';
import type { HeaderBlock } from '../headers/header-block.js';
import { type DataStatus, HeadersStatus, type HttpFilter } from './filter.js';
import { FilterPass } from './filter-pass.js';

/** What stands after the last filter of a pass. */
export interface PassEnd {
  passHeaders(headers: HeaderBlock, endStream: boolean): void;
  passData(offset: number, length: number, endStream: boolean): void;
  passTrailers(trailers: HeaderBlock): void;
  /** Called when a filter would hold back more than its limit. */
  tooLarge(): void;
  /** Called when the arena is full. */
  noRoom(): void;
}

abstract class PassTo extends FilterPass {
  readonly #end: PassEnd;

  constructor(filters: readonly HttpFilter[], memory: Memory, limit: number, end: PassEnd) {
    super(filters, memory, limit);
    this.#end = end;
  }

  protected passHeaders(headers: HeaderBlock, endStream: boolean): void {
    this.#end.passHeaders(headers, endStream);
  }
  protected passData(offset: number, length: number, endStream: boolean): void {
    this.#end.passData(offset, length, endStream);
  }
  protected passTrailers(trailers: HeaderBlock): void {
    this.#end.passTrailers(trailers);
  }
  tooLarge(): void {
    this.#end.tooLarge();
  }
  protected noRoom(): void {
    this.#end.noRoom();
  }
}

/** The request's pass. */
export class DecodePass extends PassTo {
  protected callHeaders(filter: HttpFilter, headers: HeaderBlock, endStream: boolean): HeadersStatus {
    return filter.decodeHeaders?.(headers, endStream) ?? HeadersStatus.Continue;
  }
  protected callData(filter: HttpFilter, offset: number, length: number, endStream: boolean, absent: DataStatus) {
    return filter.decodeData?.(offset, length, endStream) ?? absent;
  }
  protected callTrailers(filter: HttpFilter, trailers: HeaderBlock, absent: HeadersStatus): HeadersStatus {
    return filter.decodeTrailers?.(trailers) ?? absent;
  }
}

/** The response's pass, whose filters are given in the order of the response. */
export class EncodePass extends PassTo {
  protected callHeaders(filter: HttpFilter, headers: HeaderBlock, endStream: boolean): HeadersStatus {
    return filter.encodeHeaders?.(headers, endStream) ?? HeadersStatus.Continue;
  }
  protected callData(filter: HttpFilter, offset: number, length: number, endStream: boolean, absent: DataStatus) {
    return filter.encodeData?.(offset, length, endStream) ?? absent;
  }
  protected callTrailers(filter: HttpFilter, trailers: HeaderBlock, absent: HeadersStatus): HeadersStatus {
    return filter.encodeTrailers?.(trailers) ?? absent;
  }
}
