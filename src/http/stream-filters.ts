// The HTTP filters of a stream: made for each request, its way in through them, and its response's way out. One object a
// stream object whose chain has filters, used again for each of its requests.

import { HttpStats } from '../stats/layouts/http.js';
import {
  type DataStatus,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterFactory,
  type ResponseStream,
  type TerminalFilter,
} from './filter.js';
import { FilterPass } from './filter-pass.js';
import type { HeaderBlock } from './headers/header-block.js';
import type { ManagerContext } from './manager-context.js';

/** The stream around the filters: what comes out of the last one goes to the client. */
export interface FilteredStream extends ResponseStream {
  readonly manager: ManagerContext;
  passHeaders(headers: HeaderBlock, endStream: boolean): void;
  passData(offset: number, length: number, endStream: boolean): void;
  passTrailers(trailers: HeaderBlock): void;
  /** Logs an exception that has done no harm. */
  report(error: unknown): void;
}

export class StreamFilters {
  /** Undefined: no filter has anything to do with this request. */
  decode: DecodePass | undefined;
  /** Undefined: the response goes past the filters. */
  encode: EncodePass | undefined;
  readonly #stream: FilteredStream;
  readonly #terminal: TerminalFilter;
  #filters: HttpFilter[] = [];

  constructor(stream: FilteredStream, terminal: TerminalFilter) {
    this.#stream = stream;
    this.#terminal = terminal;
  }

  /** Makes those that the stream's route asks for. */
  begin(): void {
    this.#create(0);
    if (this.#filters.length === 0) return;
    this.decode = new DecodePass(this.#filters, this.#stream, this.#terminal);
    this.encode = this.#newEncodePass();
  }

  /** Makes those behind `filter`, which `factory` has made, anew: the stream has another route. */
  replaceBehind(filter: HttpFilter, factory: HttpFilterFactory): void {
    const next = this.#filters.indexOf(filter) + 1;
    this.#destroy(this.#filters.splice(next));
    this.#create(this.#stream.manager.options.filters.findIndex((each) => each.factory === factory) + 1);
    this.encode = this.#newEncodePass();
  }

  /** An answer is about to take the place of the response: what they hold of that is dropped. Once they have begun with it, they see nothing of the answer. */
  replaceResponse(): void {
    this.decode?.end();
    if (this.encode?.hasBegun !== true) return;
    this.encode.end();
    this.encode = undefined;
  }

  /** The stream is over. */
  end(): void {
    if (this.#filters.length === 0) return;
    const filters = this.#filters;
    this.decode?.end();
    this.encode?.end();
    this.decode = this.encode = undefined;
    this.#filters = [];
    this.#destroy(filters);
  }

  /** One that throws keeps neither the others nor the end of the stream from what they have to release. */
  #destroy(filters: readonly HttpFilter[]): void {
    for (const filter of filters) {
      try {
        filter.onDestroy?.();
      } catch (error) {
        this.#stream.report(error);
      }
    }
  }

  /** Those of the chain from the place `first` on, behind the ones that there are. */
  #create(first: number): void {
    const { filters } = this.#stream.manager.options;
    for (let index = first; index < filters.length; index++) {
      const { factory, isDisabled } = filters[index]!;
      const routeConfig = this.#stream.route?.filterConfigs[index];
      if (isDisabled && routeConfig === undefined) continue;
      const filter = factory.create(this.#stream, routeConfig);
      if (filter !== undefined) this.#filters.push(filter);
    }
  }

  #newEncodePass(): EncodePass {
    return new EncodePass([...this.#filters].reverse(), this.#stream);
  }
}

/** A request on its way in. Behind the last filter stands the router. */
class DecodePass extends FilterPass {
  readonly #stream: FilteredStream;
  readonly #terminal: TerminalFilter;

  constructor(filters: readonly HttpFilter[], stream: FilteredStream, terminal: TerminalFilter) {
    const { options, thread } = stream.manager;
    super(filters, thread.memory, options.bufferLimit);
    this.#stream = stream;
    this.#terminal = terminal;
  }

  protected callHeaders(filter: HttpFilter, headers: HeaderBlock, endStream: boolean): HeadersStatus {
    return filter.decodeHeaders?.(headers, endStream) ?? HeadersStatus.Continue;
  }
  protected callData(filter: HttpFilter, offset: number, length: number, endStream: boolean, absent: DataStatus) {
    return filter.decodeData?.(offset, length, endStream) ?? absent;
  }
  protected callTrailers(filter: HttpFilter, trailers: HeaderBlock, absent: HeadersStatus): HeadersStatus {
    return filter.decodeTrailers?.(trailers) ?? absent;
  }

  protected passHeaders(headers: HeaderBlock, endStream: boolean): void {
    this.#terminal.decodeHeaders(headers, endStream);
  }
  protected passData(offset: number, length: number, endStream: boolean): void {
    this.#terminal.decodeData(offset, length, endStream);
  }
  protected passTrailers(trailers: HeaderBlock): void {
    this.#terminal.decodeTrailers(trailers);
  }
  protected tooLarge(): void {
    this.#stream.httpStats.increment(HttpStats.at.downstream_rq_too_large);
    this.#stream.sendLocalReply({
      status: 413,
      body: 'Payload Too Large',
      details: 'request_payload_too_large',
      flags: 0,
    });
  }
}

/** A response on its way out; the filters are given in the order of that way. Behind the last one stands the codec. */
class EncodePass extends FilterPass {
  readonly #stream: FilteredStream;

  constructor(filters: readonly HttpFilter[], stream: FilteredStream) {
    const { options, thread } = stream.manager;
    super(filters, thread.memory, options.bufferLimit);
    this.#stream = stream;
  }

  protected callHeaders(filter: HttpFilter, headers: HeaderBlock, endStream: boolean): HeadersStatus {
    return filter.encodeHeaders?.(headers, endStream) ?? HeadersStatus.Continue;
  }
  protected callData(filter: HttpFilter, offset: number, length: number, endStream: boolean, absent: DataStatus) {
    return filter.encodeData?.(offset, length, endStream) ?? absent;
  }
  protected callTrailers(filter: HttpFilter, trailers: HeaderBlock, absent: HeadersStatus): HeadersStatus {
    return filter.encodeTrailers?.(trailers) ?? absent;
  }

  protected passHeaders(headers: HeaderBlock, endStream: boolean): void {
    this.#stream.passHeaders(headers, endStream);
  }
  protected passData(offset: number, length: number, endStream: boolean): void {
    this.#stream.passData(offset, length, endStream);
  }
  protected passTrailers(trailers: HeaderBlock): void {
    this.#stream.passTrailers(trailers);
  }
  protected tooLarge(): void {
    this.#stream.httpStats.increment(HttpStats.at.rs_too_large);
    this.#stream.sendLocalReply({
      status: 500,
      body: 'Internal Server Error',
      details: 'response_payload_too_large',
      flags: 0,
    });
  }
}
