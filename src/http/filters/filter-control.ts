// What one filter of one request may do with its stream, until it is destroyed. Streams are used again: a filter whose timer or
// answer comes late holds this, and reaches no other request.

import { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { Route } from '../routing/actions/route.js';
import type { MissingHost } from '../routing/tables/on-demand-hosts.js';
import type { HttpFilter, LocalReply, StreamControl } from './filter.js';

/** The stream, as far as its filters may use it; `filter` is the one that asks. Nothing of it throws. */
export interface FilterHost {
  readonly info: StreamInfo;
  beginTurn(): void;
  /** The request ends with what a filter of it has thrown. */
  fault(error: unknown): void;
  continueDecoding(filter: HttpFilter): void;
  continueEncoding(filter: HttpFilter): void;
  heldRequestBytes(filter: HttpFilter): number;
  heldResponseBytes(filter: HttpFilter): number;
  addRequestBytes(filter: HttpFilter, bytes: Uint8Array): void;
  addResponseBytes(filter: HttpFilter, bytes: Uint8Array): void;
  addRequestTrailers(filter: HttpFilter): HeaderBlock | undefined;
  addResponseTrailers(filter: HttpFilter): HeaderBlock | undefined;
  setRequestBufferLimit(bytes: number): void;
  /** A filter pauses the request that does not do so yet, and one that does lets it flow again. */
  pauseForFilter(): void;
  resumeForFilter(): void;
  route(): Route<unknown> | undefined;
  missingHost(): MissingHost | undefined;
  /** `place`: of the filter in the configured chain. */
  continueWithNewRoute(filter: HttpFilter, place: number): void;
  sendLocalReply(reply: LocalReply): void;
}

export class FilterControl implements StreamControl {
  readonly #place: number;
  /** Undefined: the filter is gone. */
  #host: FilterHost | undefined;
  #filter: HttpFilter | undefined;
  #isPausing = false;

  /** `place`: of the filter in the configured chain. */
  constructor(host: FilterHost, place: number) {
    this.#host = host;
    this.#place = place;
  }

  /** Its factory has made the filter. */
  belongsTo(filter: HttpFilter): void {
    this.#filter = filter;
  }

  /** The filter is destroyed. */
  release(): void {
    this.resumeRequest();
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

  addRequestTrailers(): HeaderBlock | undefined {
    return this.#filter && this.#host!.addRequestTrailers(this.#filter);
  }

  addResponseTrailers(): HeaderBlock | undefined {
    return this.#filter && this.#host!.addResponseTrailers(this.#filter);
  }

  setRequestBufferLimit(bytes: number): void {
    this.#host?.setRequestBufferLimit(bytes);
  }

  pauseRequest(): void {
    if (this.#isPausing || this.#host === undefined) return;
    this.#isPausing = true;
    this.#host.pauseForFilter();
  }

  resumeRequest(): void {
    if (!this.#isPausing) return;
    this.#isPausing = false;
    this.#host!.resumeForFilter();
  }

  route(): Route<unknown> | undefined {
    return this.#host?.route();
  }

  missingHost(): MissingHost | undefined {
    return this.#host?.missingHost();
  }

  continueWithNewRoute(): void {
    if (this.#filter !== undefined) this.#host!.continueWithNewRoute(this.#filter, this.#place);
  }

  sendLocalReply(reply: LocalReply): void {
    if (this.#filter !== undefined) this.#host!.sendLocalReply(reply);
    // Those before it would never learn of the answer, and the request would go on.
    else if (this.#host !== undefined) throw new Error('a filter answers as it is made: answer in decodeHeaders()');
  }

  /** What is thrown when the filter is gone harms nobody, and is logged as any rejection that nobody handles. */
  #fault(error: unknown): void {
    if (this.#host === undefined) void Promise.reject(error);
    else this.#host.fault(error);
  }
}
