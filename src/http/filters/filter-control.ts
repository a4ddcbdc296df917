// One filter's access to its stream, until the filter is destroyed. Stream objects are reused: a late timer or response of a filter goes
// through this object, and so cannot reach another request.

import { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { Route } from '../routing/actions/route.js';
import type { MissingHost } from '../routing/tables/on-demand-hosts.js';
import { FILTER_OFF, FILTER_ON } from '../routing/tables/route-levels.js';
import type { ClusterReferenceLike, HttpFilter, HttpFilterFactory, LocalReply, StreamControl } from './filter.js';

/** The part of a stream that its filters may use; `filter` is the caller. No method throws. */
export interface FilterHost {
  readonly info: StreamInfo;
  beginTurn(): void;
  /** Ends the request because one of its filters threw. */
  fault(error: unknown): void;
  continueDecoding(filter: HttpFilter): void;
  continueEncoding(filter: HttpFilter): void;
  heldRequestBytes(filter: HttpFilter): number;
  heldResponseBytes(filter: HttpFilter): number;
  addRequestBytes(filter: HttpFilter, bytes: Uint8Array): void;
  addResponseBytes(filter: HttpFilter, bytes: Uint8Array): void;
  readRequestBytes(filter: HttpFilter): Buffer;
  readResponseBytes(filter: HttpFilter): Buffer;
  dropRequestBytes(filter: HttpFilter): void;
  dropResponseBytes(filter: HttpFilter): void;
  passRequestBytes(filter: HttpFilter, bytes: Uint8Array): void;
  passResponseBytes(filter: HttpFilter, bytes: Uint8Array): void;
  passRequestHead(filter: HttpFilter): void;
  passResponseHead(filter: HttpFilter): void;
  addRequestTrailers(filter: HttpFilter): HeaderBlock | undefined;
  addResponseTrailers(filter: HttpFilter): HeaderBlock | undefined;
  setRequestBufferLimit(bytes: number): void;
  refuseLargeRequest(): void;
  setResponseBufferLimit(bytes: number): void;
  /** Called once when a filter begins to pause the message, and once when that filter resumes it. */
  pauseRequestForFilter(): void;
  resumeRequestForFilter(): void;
  pauseResponseForFilter(): void;
  resumeResponseForFilter(): void;
  route(): Route<unknown> | undefined;
  setCluster(cluster: ClusterReferenceLike): boolean;
  missingHost(): MissingHost | undefined;
  /** `place`: index of the filter in the configured chain. */
  continueWithNewRoute(filter: HttpFilter, place: number): void;
  chooseRouteAgain(filter: HttpFilter, place: number): boolean;
  insertFilters(filter: HttpFilter, place: number, factories: readonly HttpFilterFactory[]): void;
  sendLocalReply(reply: LocalReply): void;
  resetStream(details: string): void;
}

const EMPTY = Buffer.alloc(0);

export class FilterControl implements StreamControl {
  /** Index of the filter in the configured chain. */
  readonly place: number;
  /** The filter was inserted by the one of the chain at its place. */
  readonly #isInserted: boolean;
  /** Undefined once the filter is destroyed. */
  #host: FilterHost | undefined;
  #filter: HttpFilter | undefined;
  #pausesRequest = false;
  #pausesResponse = false;

  constructor(host: FilterHost, place: number, isInserted = false) {
    this.#host = host;
    this.place = place;
    this.#isInserted = isInserted;
  }

  /** Sets the filter that the factory created with this control. */
  attach(filter: HttpFilter): void {
    this.#filter = filter;
  }

  /** Detaches the destroyed filter from the stream. */
  release(): void {
    this.resumeRequest();
    this.resumeResponse();
    this.#host = undefined;
    this.#filter = undefined;
  }

  get info(): StreamInfo {
    return this.#host?.info ?? new StreamInfo();
  }

  run(act: () => void | Promise<void>): void {
    if (this.#host === undefined) return;
    this.#host.beginTurn();
    try {
      act()?.catch((error: unknown) => this.#fault(error));
    } catch (error) {
      this.#fault(error);
    }
  }

  continueDecoding(): void {
    if (this.#filter !== undefined) this.#host!.continueDecoding(this.#filter);
  }

  continueEncoding(): void {
    if (this.#filter !== undefined) this.#host!.continueEncoding(this.#filter);
  }

  heldRequestBytes(): number {
    return this.#filter === undefined ? 0 : this.#host!.heldRequestBytes(this.#filter);
  }

  heldResponseBytes(): number {
    return this.#filter === undefined ? 0 : this.#host!.heldResponseBytes(this.#filter);
  }

  addRequestBytes(bytes: Uint8Array): void {
    if (this.#filter !== undefined) this.#host!.addRequestBytes(this.#filter, bytes);
  }

  addResponseBytes(bytes: Uint8Array): void {
    if (this.#filter !== undefined) this.#host!.addResponseBytes(this.#filter, bytes);
  }

  readRequestBytes(): Buffer {
    return this.#filter === undefined ? EMPTY : this.#host!.readRequestBytes(this.#filter);
  }

  readResponseBytes(): Buffer {
    return this.#filter === undefined ? EMPTY : this.#host!.readResponseBytes(this.#filter);
  }

  dropRequestBytes(): void {
    if (this.#filter !== undefined) this.#host!.dropRequestBytes(this.#filter);
  }

  dropResponseBytes(): void {
    if (this.#filter !== undefined) this.#host!.dropResponseBytes(this.#filter);
  }

  passRequestBytes(bytes: Uint8Array): void {
    if (this.#filter !== undefined) this.#host!.passRequestBytes(this.#filter, bytes);
  }

  passResponseBytes(bytes: Uint8Array): void {
    if (this.#filter !== undefined) this.#host!.passResponseBytes(this.#filter, bytes);
  }

  passRequestHead(): void {
    if (this.#filter !== undefined) this.#host!.passRequestHead(this.#filter);
  }

  passResponseHead(): void {
    if (this.#filter !== undefined) this.#host!.passResponseHead(this.#filter);
  }

  addRequestTrailers(): HeaderBlock | undefined {
    return this.#filter && this.#host!.addRequestTrailers(this.#filter);
  }

  addResponseTrailers(): HeaderBlock | undefined {
    return this.#filter && this.#host!.addResponseTrailers(this.#filter);
  }

  setRequestBufferLimit(bytes: number): void {
    this.#host?.setRequestBufferLimit(bytes);
  }

  refuseLargeRequest(): void {
    this.#host?.refuseLargeRequest();
  }

  setResponseBufferLimit(bytes: number): void {
    this.#host?.setResponseBufferLimit(bytes);
  }

  pauseRequest(): void {
    if (this.#pausesRequest || this.#host === undefined) return;
    this.#pausesRequest = true;
    this.#host.pauseRequestForFilter();
  }

  resumeRequest(): void {
    if (!this.#pausesRequest) return;
    this.#pausesRequest = false;
    this.#host!.resumeRequestForFilter();
  }

  pauseResponse(): void {
    if (this.#pausesResponse || this.#host === undefined) return;
    this.#pausesResponse = true;
    this.#host.pauseResponseForFilter();
  }

  resumeResponse(): void {
    if (!this.#pausesResponse) return;
    this.#pausesResponse = false;
    this.#host!.resumeResponseForFilter();
  }

  route(): Route<unknown> | undefined {
    return this.#host?.route();
  }

  setCluster(cluster: ClusterReferenceLike): boolean {
    return this.#host?.setCluster(cluster) ?? false;
  }

  missingHost(): MissingHost | undefined {
    return this.#host?.missingHost();
  }

  continueWithNewRoute(): void {
    if (this.#filter !== undefined) this.#host!.continueWithNewRoute(this.#filter, this.place);
  }

  chooseRouteAgain(): boolean {
    return this.#filter !== undefined && this.#host!.chooseRouteAgain(this.#filter, this.place);
  }

  routeConfig(): unknown {
    if (this.#isInserted) return undefined;
    const config = this.#host?.route()?.filterConfigs[this.place];
    if (config === FILTER_OFF) return null;
    return config === FILTER_ON ? undefined : config;
  }

  insertFilters(factories: readonly HttpFilterFactory[]): void {
    if (this.#filter !== undefined) this.#host!.insertFilters(this.#filter, this.place, factories);
  }

  sendLocalReply(reply: LocalReply): void {
    if (this.#filter !== undefined) this.#host!.sendLocalReply(reply);
    // Filters before this one would not see the reply, and the request would continue.
    else if (this.#host !== undefined)
      throw new Error('a filter cannot send a local reply in create(): send it in decodeHeaders()');
  }

  resetStream(details: string): void {
    this.#host?.resetStream(details);
  }

  /** Ends the request. An error after the filter was destroyed affects no request; it is logged as an unhandled rejection. */
  #fault(error: unknown): void {
    if (this.#host === undefined) void Promise.reject(error);
    else this.#host.fault(error);
  }
}
