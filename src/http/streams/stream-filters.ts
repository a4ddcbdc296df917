// The HTTP filters of a stream, which are created for each request, and the passes of request and response through them. Each stream object
// whose chain has filters has one StreamFilters and reuses it for each of its requests.

import { HttpStats } from '../../stats/layouts/http.js';
import type { ClusterReferenceLike, HttpFilter, ResponseStream, TerminalFilter } from '../filters/filter.js';
import { DecodePass, EncodePass, type PassEnd } from '../filters/message-passes.js';
import { NO_ROOM } from '../filters/no-room.js';
import { RunningFilters } from '../filters/running-filters.js';
import { REQUEST_TOO_LARGE, RESPONSE_TOO_LARGE } from '../filters/too-large.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { ManagerContext } from '../manager-context.js';
import type { MissingHost } from '../routing/tables/on-demand-hosts.js';
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

/** A bit for RequestFlow.pause(). */
const PAUSED_BY_FILTERS = 1 << 8;

export class StreamFilters extends RunningFilters {
  readonly #stream: FilteredStream;
  readonly #terminal: TerminalFilter;
  readonly #flow: RequestFlow;
  readonly #requestEnd: PassEnd;
  readonly #responseEnd: PassEnd;
  #isClientBlocked = false;
  #isHostBlocked = false;

  constructor(stream: FilteredStream, terminal: TerminalFilter, flow: RequestFlow) {
    super(stream);
    this.#stream = stream;
    this.#terminal = terminal;
    this.#flow = flow;
    this.#requestEnd = requestEnd(stream, terminal);
    this.#responseEnd = responseEnd(stream);
  }

  /** Creates the filters for the stream's route. */
  begin(): void {
    this.#isClientBlocked = this.#isHostBlocked = false;
    this.#create(0);
    if (this.filters.length === 0) return;
    this.decode = this.#newDecodePass();
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
    if (!this.pausesResponse) this.#terminal.onResponseBlocked();
    this.notify((filter) => filter.onResponseBlocked?.());
  }

  clientDrained(): void {
    this.#isClientBlocked = false;
    this.notify((filter) => filter.onResponseDrained?.());
    // What a filter has passed on may have blocked the client again.
    if (!this.pausesResponse && !this.#isClientBlocked) this.#terminal.onResponseDrained();
  }

  /** Called when the terminal filter pauses the request, and when it resumes it. */
  hostBlocked(isBlocked: boolean): void {
    if (this.#isHostBlocked === isBlocked) return;
    this.#isHostBlocked = isBlocked;
    this.notify((filter) => (isBlocked ? filter.onRequestBlocked?.() : filter.onRequestDrained?.()));
  }

  // ── FilterHost ───────────────────────────────────────────────────────────────────────────────────────────────────

  beginTurn(): void {
    this.#stream.manager.thread.transport.beginTurn();
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

  passRequestHead(filter: HttpFilter): void {
    this.beginTurn();
    this.#flow.beginRelease();
    try {
      this.decode?.passHead(filter);
    } catch (error) {
      this.#stream.fault(error);
    } finally {
      this.#flow.endRelease();
    }
  }

  protected pauseRequestBody(): void {
    // Not flow control: as in Envoy, what a filter waits for is no reason to count.
    this.#flow.pause(PAUSED_BY_FILTERS, false);
  }

  protected resumeRequestBody(): void {
    this.#flow.resume(PAUSED_BY_FILTERS);
  }

  protected pauseResponseBody(): void {
    if (!this.#isClientBlocked) this.#terminal.onResponseBlocked();
  }

  protected resumeResponseBody(): void {
    if (!this.#isClientBlocked) this.#terminal.onResponseDrained();
  }

  setCluster(cluster: ClusterReferenceLike): boolean {
    return this.#stream.setCluster(cluster);
  }

  missingHost(): MissingHost | undefined {
    return this.#stream.missingHost();
  }

  continueWithNewRoute(filter: HttpFilter, place: number): void {
    if (this.chooseRouteAgain(filter, place)) this.continueDecoding(filter);
  }

  chooseRouteAgain(filter: HttpFilter, place: number): boolean {
    if (this.decode?.canReplaceRoute(filter) !== true) return false;
    this.beginTurn();
    try {
      if (!this.#stream.findNewRoute()) return false;
      this.destroyFrom(this.indexAfter(filter, place));
      this.#create(place + 1);
      this.renewEncode();
      return true;
    } catch (error) {
      this.#stream.fault(error);
      return false;
    }
  }

  protected renewEncode(): void {
    this.encode = this.#newEncodePass();
  }

  resetStream(details: string): void {
    this.beginTurn();
    this.#stream.resetResponse(details);
  }

  protected report(error: unknown, what: string): void {
    this.#stream.report(error, what);
  }

  /** Creates the filters of the chain from `place` on and appends them. */
  #create(place: number): void {
    const { filters } = this.#stream.manager.options;
    for (; place < filters.length; place++) {
      const { factory, isDisabled } = filters[place]!;
      this.append(factory, place, isDisabled, this.#stream.route?.filterConfigs[place]);
    }
  }

  #newDecodePass(): DecodePass {
    const { options, thread } = this.#stream.manager;
    return new DecodePass(this.filters, thread.memory, options.bufferLimit, this.#requestEnd);
  }

  #newEncodePass(): EncodePass {
    const { options, thread } = this.#stream.manager;
    return new EncodePass([...this.filters].reverse(), thread.memory, options.bufferLimit, this.#responseEnd);
  }
}

/** The request goes to the terminal filter. */
function requestEnd(stream: FilteredStream, terminal: TerminalFilter): PassEnd {
  return {
    passHeaders: (headers, endStream) => terminal.decodeHeaders(headers, endStream),
    passData: (offset, length, endStream) => terminal.decodeData(offset, length, endStream),
    passTrailers: (trailers) => terminal.decodeTrailers(trailers),
    tooLarge() {
      stream.httpStats.increment(HttpStats.at.downstream_rq_too_large);
      stream.sendLocalReply(REQUEST_TOO_LARGE);
    },
    noRoom: () => stream.sendLocalReply(NO_ROOM),
  };
}

/** The response goes to the codec. */
function responseEnd(stream: FilteredStream): PassEnd {
  return {
    passHeaders: (headers, endStream) => stream.passHeaders(headers, endStream),
    passData: (offset, length, endStream) => stream.passData(offset, length, endStream),
    passTrailers: (trailers) => stream.passTrailers(trailers),
    tooLarge() {
      stream.httpStats.increment(HttpStats.at.rs_too_large);
      stream.sendLocalReply(RESPONSE_TOO_LARGE);
    },
    noRoom: () => stream.sendLocalReply(NO_ROOM),
  };
}
