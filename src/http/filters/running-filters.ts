// The filters of one message exchange, created for it, and their access to it. What stands around them, a stream of a client or a try of
// a request, extends this class.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { Route } from '../routing/actions/route.js';
import type { MissingHost } from '../routing/tables/on-demand-hosts.js';
import { FILTER_OFF, FILTER_ON } from '../routing/tables/route-levels.js';
import type { ClusterReferenceLike, HttpFilter, HttpFilterFactory, LocalReply } from './filter.js';
import { FilterControl, type FilterHost } from './filter-control.js';
import type { DecodePass, EncodePass } from './message-passes.js';

const EMPTY = Buffer.alloc(0);

/** The exchange around the filters. */
export interface FilteredExchange {
  readonly info: StreamInfo;
  readonly route: Route<unknown> | undefined;
  sendLocalReply(reply: LocalReply): void;
  fault(error: unknown): void;
}

export abstract class RunningFilters implements FilterHost {
  /** Undefined if no filter handles this request. */
  decode: DecodePass | undefined;
  /** Undefined if the response bypasses the filters. */
  encode: EncodePass | undefined;
  protected readonly filters: HttpFilter[] = [];
  /** The controls of `filters`, in the same order. */
  readonly #controls: FilterControl[] = [];
  readonly #exchange: FilteredExchange;
  /** How many filters pause the request and the response. */
  #pausingRequest = 0;
  #pausingResponse = 0;

  constructor(exchange: FilteredExchange) {
    this.#exchange = exchange;
  }

  /** Begins a turn of the worker. Filters may call at any time, also from a timer or promise of Node. */
  abstract beginTurn(): void;
  abstract continueDecoding(filter: HttpFilter): void;
  abstract passRequestHead(filter: HttpFilter): void;
  abstract setCluster(cluster: ClusterReferenceLike): boolean;
  abstract missingHost(): MissingHost | undefined;
  abstract continueWithNewRoute(filter: HttpFilter, place: number): void;
  abstract chooseRouteAgain(filter: HttpFilter, place: number): boolean;
  /** Replaces the pass of the response by one for the current filters. */
  protected abstract renewEncode(): void;
  /** Logs an exception that does not affect the exchange. */
  protected abstract report(error: unknown, what: string): void;
  /** Called when the first filter pauses the body of a message, and when the last one resumes it. */
  protected abstract pauseRequestBody(): void;
  protected abstract resumeRequestBody(): void;
  protected abstract pauseResponseBody(): void;
  protected abstract resumeResponseBody(): void;

  get pausesResponse(): boolean {
    return this.#pausingResponse > 0;
  }

  get info(): StreamInfo {
    return this.#exchange.info;
  }

  fault(error: unknown): void {
    this.beginTurn();
    this.#exchange.fault(error);
  }

  continueEncoding(filter: HttpFilter): void {
    this.beginTurn();
    try {
      this.encode?.continue(filter);
    } catch (error) {
      this.#exchange.fault(error);
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
      this.#exchange.fault(error);
    }
  }

  addResponseBytes(filter: HttpFilter, bytes: Uint8Array): void {
    this.beginTurn();
    try {
      this.encode?.add(filter, bytes);
    } catch (error) {
      this.#exchange.fault(error);
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
      this.#exchange.fault(error);
    }
  }

  passResponseBytes(filter: HttpFilter, bytes: Uint8Array): void {
    this.beginTurn();
    try {
      this.encode?.inject(filter, bytes);
    } catch (error) {
      this.#exchange.fault(error);
    }
  }

  passResponseHead(filter: HttpFilter): void {
    this.beginTurn();
    try {
      this.encode?.passHead(filter);
    } catch (error) {
      this.#exchange.fault(error);
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
    if (this.#pausingRequest++ === 0) this.pauseRequestBody();
  }

  resumeRequestForFilter(): void {
    this.beginTurn();
    if (--this.#pausingRequest === 0) this.resumeRequestBody();
  }

  pauseResponseForFilter(): void {
    if (this.#pausingResponse++ === 0) this.pauseResponseBody();
  }

  resumeResponseForFilter(): void {
    this.beginTurn();
    if (--this.#pausingResponse === 0) this.resumeResponseBody();
  }

  route(): Route<unknown> | undefined {
    return this.#exchange.route;
  }

  abstract resetStream(details: string): void;

  insertFilters(filter: HttpFilter, place: number, factories: readonly HttpFilterFactory[]): void {
    if (this.decode?.runsHeadOf(filter) !== true) return;
    const next = this.filters.indexOf(filter) + 1;
    const filters = this.filters.splice(next);
    const controls = this.#controls.splice(next);
    try {
      for (const factory of factories) this.append(factory, place, false, undefined, true);
    } finally {
      this.filters.push(...filters);
      this.#controls.push(...controls);
      const limit = this.encode?.limit;
      this.renewEncode();
      if (limit !== undefined) this.encode!.limit = limit;
    }
  }

  /** Returns the index of the first filter of the chain after `filter`, whose place is `place`. Inserted filters belong to that place. */
  protected indexAfter(filter: HttpFilter, place: number): number {
    let index = this.filters.indexOf(filter) + 1;
    while (index < this.filters.length && this.#controls[index]!.place === place) index++;
    return index;
  }

  sendLocalReply(reply: LocalReply): void {
    this.beginTurn();
    try {
      this.#exchange.sendLocalReply(reply);
    } catch (error) {
      this.#exchange.fault(error);
    }
  }

  /** Calls `call` for each filter. */
  protected notify(call: (filter: HttpFilter) => void): void {
    try {
      for (const filter of this.filters) call(filter);
    } catch (error) {
      this.#exchange.fault(error);
    }
  }

  #orFault<T>(act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      this.#exchange.fault(error);
      return undefined;
    }
  }

  /**
   * Creates and appends a filter, unless the route disables it. `place`: index in the configured chain; `isDisabled`: it runs only where
   * `routeConfig`, as in LevelSettings.filterConfigs, enables it.
   */
  protected append(
    factory: HttpFilterFactory,
    place: number,
    isDisabled: boolean,
    routeConfig: unknown,
    isInserted = false,
  ): void {
    if (routeConfig === undefined ? isDisabled : routeConfig === FILTER_OFF) return;
    const control = new FilterControl(this, place, isInserted);
    let filter: HttpFilter | undefined;
    try {
      filter = factory.create(control, routeConfig === FILTER_ON ? undefined : routeConfig);
    } finally {
      if (filter === undefined) control.release();
    }
    if (filter === undefined) return;
    control.attach(filter);
    this.filters.push(filter);
    this.#controls.push(control);
  }

  /** Ends the passes, and destroys all filters. */
  end(): void {
    if (this.filters.length === 0) return;
    this.decode?.end();
    this.encode?.end();
    this.decode = this.encode = undefined;
    this.destroyFrom(0);
  }

  /**
   * Destroys the filters from `first` on. An exception in one does not prevent the others and the stream from releasing their resources.
   */
  protected destroyFrom(first: number): void {
    const filters = this.filters.splice(first);
    const controls = this.#controls.splice(first);
    for (let index = 0; index < filters.length; index++) {
      try {
        filters[index]!.onDestroy?.();
      } catch (error) {
        this.report(error, 'onDestroy() of a filter failed');
      }
      controls[index]!.release();
    }
  }
}
