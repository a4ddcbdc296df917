// The HTTP filters of a stream, which are created for each request, and the passes of request and response through them. Each stream object
// whose chain has filters has one StreamFilters and reuses it for each of its requests.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { HttpStats } from '../../stats/layouts/http.js';
import {
  type ClusterReferenceLike,
  type DataStatus,
  HeadersStatus,
  type HttpFilter,
  type LocalReply,
  type ResponseStream,
  type TerminalFilter,
} from '../filters/filter.js';
import { FilterControl, type FilterHost } from '../filters/filter-control.js';
import { FilterPass } from '../filters/filter-pass.js';
import { NO_ROOM } from '../filters/no-room.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { ManagerContext } from '../manager-context.js';
import type { Route } from '../routing/actions/route.js';
import type { MissingHost } from '../routing/tables/on-demand-hosts.js';
import { FILTER_OFF, FILTER_ON } from '../routing/tables/route-levels.js';
import type { RequestFlow } from './request-flow.js';

/** The stream around the filters, which sends their output to the client. */
export interface FilteredStream extends ResponseStream {
  readonly manager: ManagerContext;
  missingHost(): MissingHost | undefined;
  /** See StreamControl. */
  setCluster(cluster: ClusterReferenceLike): boolean;
  /** Matches the route again. Returns false if the request got a local reply, because the new route does not allow its upgrade. */
  findNewRoute(): boolean;
  passHeaders(headers: HeaderBlock, endStream: boolean): void;
  passData(offset: number, length: number, endStream: boolean): void;
  passTrailers(trailers: HeaderBlock): void;
  /** Logs an exception that does not affect the stream. */
  report(error: unknown, what?: string): void;
}

const EMPTY = Buffer.alloc(0);

/** A bit for RequestFlow.pause(). */
const PAUSED_BY_FILTERS = 1 << 8;

export class StreamFilters implements FilterHost {
  /** Undefined if no filter handles this request. */
  decode: DecodePass | undefined;
  /** Undefined if the response bypasses the filters. */
  encode: EncodePass | undefined;
  readonly #stream: FilteredStream;
  readonly #terminal: TerminalFilter;
  readonly #flow: RequestFlow;
  readonly #filters: HttpFilter[] = [];
  /** The controls of #filters, in the same order. */
  readonly #controls: FilterControl[] = [];
  /** How many filters pause the request and the response. */
  #pausingRequest = 0;
  #pausingResponse = 0;
  #isClientBlocked = false;
  #isHostBlocked = false;

  constructor(stream: FilteredStream, terminal: TerminalFilter, flow: RequestFlow) {
    this.#stream = stream;
    this.#terminal = terminal;
    this.#flow = flow;
  }

  /** Creates the filters for the stream's route. */
  begin(): void {
    this.#isClientBlocked = this.#isHostBlocked = false;
    this.#create(0);
    if (this.#filters.length === 0) return;
    this.decode = new DecodePass(this.#filters, this.#stream, this.#terminal);
    this.encode = this.#newEncodePass();
  }

  /**
   * Called when a local reply replaces the response. If the filters have begun to process a response, they do not see the reply. Held data
   * is released.
   */
  replaceResponse(): void {
    this.decode?.end();
    if (this.encode?.hasBegun !== true) return;
    this.encode.end();
    this.encode = undefined;
  }

  /** Called when the client's send queue rises above its limit, and when it has drained. */
  clientBlocked(): void {
    this.#isClientBlocked = true;
    if (this.#pausingResponse === 0) this.#terminal.onResponseBlocked();
    this.#notify((filter) => filter.onResponseBlocked?.());
  }

  clientDrained(): void {
    this.#isClientBlocked = false;
    this.#notify((filter) => filter.onResponseDrained?.());
    if (this.#pausingResponse === 0) this.#terminal.onResponseDrained();
  }

  /** Called when the terminal filter pauses the request, and when it resumes it. */
  hostBlocked(isBlocked: boolean): void {
    if (this.#isHostBlocked === isBlocked) return;
    this.#isHostBlocked = isBlocked;
    this.#notify((filter) => (isBlocked ? filter.onRequestBlocked?.() : filter.onRequestDrained?.()));
  }

  /** Called when the stream ends. */
  end(): void {
    if (this.#filters.length === 0) return;
    this.decode?.end();
    this.encode?.end();
    this.decode = this.encode = undefined;
    this.#destroyFrom(0);
  }

  // ── FilterHost ───────────────────────────────────────────────────────────────────────────────────────────────────

  get info(): StreamInfo {
    return this.#stream.info;
  }

  /** Filters may call at any time, also from a timer or promise of Node. */
  beginTurn(): void {
    this.#stream.manager.thread.transport.beginTurn();
  }

  fault(error: unknown): void {
    this.beginTurn();
    this.#stream.fault(error);
  }

  continueDecoding(filter: HttpFilter): void {
    this.beginTurn();
    this.#flow.beginRelease();
    try {
      this.decode?.continue(filter);
    } catch (error) {
      this.#stream.fault(error);
    } finally {
      this.#flow.endRelease();
    }
  }

  continueEncoding(filter: HttpFilter): void {
    this.beginTurn();
    try {
      this.encode?.continue(filter);
    } catch (error) {
      this.#stream.fault(error);
    }
  }

  heldRequestBytes(filter: HttpFilter): number {
    return this.decode?.heldBytes(filter) ?? 0;
  }

  heldResponseBytes(filter: HttpFilter): number {
    return this.encode?.heldBytes(filter) ?? 0;
  }

  addRequestBytes(filter: HttpFilter, bytes: Uint8Array): void {
    this.beginTurn();
    try {
      this.decode?.add(filter, bytes);
    } catch (error) {
      this.#stream.fault(error);
    }
  }

  addResponseBytes(filter: HttpFilter, bytes: Uint8Array): void {
    this.beginTurn();
    try {
      this.encode?.add(filter, bytes);
    } catch (error) {
      this.#stream.fault(error);
    }
  }

  readRequestBytes(filter: HttpFilter): Buffer {
    return this.decode?.copyHeld(filter) ?? EMPTY;
  }

  readResponseBytes(filter: HttpFilter): Buffer {
    return this.encode?.copyHeld(filter) ?? EMPTY;
  }

  dropRequestBytes(filter: HttpFilter): void {
    this.decode?.dropHeld(filter);
  }

  dropResponseBytes(filter: HttpFilter): void {
    this.encode?.dropHeld(filter);
  }

  passRequestBytes(filter: HttpFilter, bytes: Uint8Array): void {
    this.beginTurn();
    try {
      this.decode?.inject(filter, bytes);
    } catch (error) {
      this.#stream.fault(error);
    }
  }

  passResponseBytes(filter: HttpFilter, bytes: Uint8Array): void {
    this.beginTurn();
    try {
      this.encode?.inject(filter, bytes);
    } catch (error) {
      this.#stream.fault(error);
    }
  }

  addRequestTrailers(filter: HttpFilter): HeaderBlock | undefined {
    this.beginTurn();
    return this.#orFault(() => this.decode?.addTrailers(filter));
  }

  addResponseTrailers(filter: HttpFilter): HeaderBlock | undefined {
    this.beginTurn();
    return this.#orFault(() => this.encode?.addTrailers(filter));
  }

  setRequestBufferLimit(bytes: number): void {
    if (this.decode !== undefined) this.decode.limit = bytes;
  }

  refuseLargeRequest(): void {
    this.decode?.tooLarge();
  }

  setResponseBufferLimit(bytes: number): void {
    if (this.encode !== undefined) this.encode.limit = bytes;
  }

  pauseRequestForFilter(): void {
    // Not flow control: as in Envoy, what a filter waits for is no reason to count.
    if (this.#pausingRequest++ === 0) this.#flow.pause(PAUSED_BY_FILTERS, false);
  }

  resumeRequestForFilter(): void {
    this.beginTurn();
    if (--this.#pausingRequest === 0) this.#flow.resume(PAUSED_BY_FILTERS);
  }

  pauseResponseForFilter(): void {
    if (this.#pausingResponse++ === 0 && !this.#isClientBlocked) this.#terminal.onResponseBlocked();
  }

  resumeResponseForFilter(): void {
    this.beginTurn();
    if (--this.#pausingResponse === 0 && !this.#isClientBlocked) this.#terminal.onResponseDrained();
  }

  route(): Route<unknown> | undefined {
    return this.#stream.route;
  }

  setCluster(cluster: ClusterReferenceLike): boolean {
    return this.#stream.setCluster(cluster);
  }

  missingHost(): MissingHost | undefined {
    return this.#stream.missingHost();
  }

  continueWithNewRoute(filter: HttpFilter, place: number): void {
    if (this.decode?.canReplaceRoute(filter) !== true) return;
    this.beginTurn();
    try {
      if (!this.#stream.findNewRoute()) return;
      this.#destroyFrom(this.#filters.indexOf(filter) + 1);
      this.#create(place + 1);
      this.encode = this.#newEncodePass();
      this.continueDecoding(filter);
    } catch (error) {
      this.#stream.fault(error);
    }
  }

  sendLocalReply(reply: LocalReply): void {
    this.beginTurn();
    try {
      this.#stream.sendLocalReply(reply);
    } catch (error) {
      this.#stream.fault(error);
    }
  }

  #notify(call: (filter: HttpFilter) => void): void {
    try {
      for (const filter of this.#filters) call(filter);
    } catch (error) {
      this.#stream.fault(error);
    }
  }

  #orFault<T>(act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      this.#stream.fault(error);
      return undefined;
    }
  }

  /** Creates the filters of the chain from `place` on and appends them. */
  #create(place: number): void {
    const { filters } = this.#stream.manager.options;
    for (; place < filters.length; place++) {
      const { factory, isDisabled } = filters[place]!;
      let routeConfig = this.#stream.route?.filterConfigs[place];
      if (routeConfig === undefined) {
        if (isDisabled) continue;
      } else if (routeConfig === FILTER_OFF) continue;
      else if (routeConfig === FILTER_ON) routeConfig = undefined;
      const control = new FilterControl(this, place);
      let filter: HttpFilter | undefined;
      try {
        filter = factory.create(control, routeConfig);
      } finally {
        if (filter === undefined) control.release();
      }
      if (filter === undefined) continue;
      control.attach(filter);
      this.#filters.push(filter);
      this.#controls.push(control);
    }
  }

  /**
   * Destroys the filters from `first` on. An exception in one does not prevent the others and the stream from releasing their resources.
   */
  #destroyFrom(first: number): void {
    const filters = this.#filters.splice(first);
    const controls = this.#controls.splice(first);
    for (let index = 0; index < filters.length; index++) {
      try {
        filters[index]!.onDestroy?.();
      } catch (error) {
        this.#stream.report(error, 'onDestroy() of a filter failed');
      }
      controls[index]!.release();
    }
  }

  #newEncodePass(): EncodePass {
    return new EncodePass([...this.#filters].reverse(), this.#stream);
  }
}

/** The request's pass through the filters, which ends at the terminal filter. */
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
  tooLarge(): void {
    this.#stream.httpStats.increment(HttpStats.at.downstream_rq_too_large);
    this.#stream.sendLocalReply({
      status: 413,
      body: 'Payload Too Large',
      details: 'request_payload_too_large',
      flags: 0,
    });
  }
  protected noRoom(): void {
    this.#stream.sendLocalReply(NO_ROOM);
  }
}

/** The response's pass through the filters, given in the order of the response, which ends at the codec. */
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
  protected noRoom(): void {
    this.#stream.sendLocalReply(NO_ROOM);
  }
}
