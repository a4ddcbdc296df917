// A filter that its matcher skips for some requests and responses. Calls pass to the filter inside it.

import {
  DataStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterFactory,
  NoRoomError,
  type StreamControl,
  type ThreadStats,
} from '../../../sdk.js';
import type { Matched } from '../../common/matching/matcher-inputs.js';
import { type ExecutionTree, SKIPPED } from '../composite/actions.js';

/** The matcher of a delegate. Actions other than SKIPPED have no effect. */
export interface SkipTree {
  readonly tree: ExecutionTree;
  /** It reads the response: it may decide only then. */
  readonly usesResponse: boolean;
}

/** The details of a response of a host. */
const VIA_UPSTREAM = 'via_upstream';

/** Returns the filter of one stream, or undefined if the filter inside does not handle it. */
export function delegateTo(
  factory: HttpFilterFactory,
  stream: StreamControl,
  skip: SkipTree,
  stats: ThreadStats,
): HttpFilter | undefined {
  const inner = factory.create(stream, undefined);
  return inner && new DelegatingFilter(inner, stream, skip, stats);
}

class DelegatingFilter implements HttpFilter {
  // Absent where the inner filter has none: that differs from one that continues.
  readonly decodeData: HttpFilter['decodeData'];
  readonly decodeTrailers: HttpFilter['decodeTrailers'];
  readonly encodeData: HttpFilter['encodeData'];
  readonly encodeTrailers: HttpFilter['encodeTrailers'];
  readonly #inner: HttpFilter;
  readonly #stream: StreamControl;
  readonly #skip: SkipTree;
  readonly #stats: ThreadStats;
  #isDecided = false;
  #skipsRequest = false;
  #skipsResponse = false;

  constructor(inner: HttpFilter, stream: StreamControl, skip: SkipTree, stats: ThreadStats) {
    this.#inner = inner;
    this.#stream = stream;
    this.#skip = skip;
    this.#stats = stats;
    if (inner.decodeData !== undefined) this.decodeData = this.#decodeData;
    if (inner.decodeTrailers !== undefined) this.decodeTrailers = this.#decodeTrailers;
    if (inner.encodeData !== undefined) this.encodeData = this.#encodeData;
    if (inner.encodeTrailers !== undefined) this.encodeTrailers = this.#encodeTrailers;
  }

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    // The head of the request is read again when the response arrives.
    if (this.#skip.usesResponse && !headers.retain())
      throw new NoRoomError('no room in the arena for a request head that its response depends on');
    this.#skipsRequest = this.#skipsResponse = this.#decide({ ...this.#common, headers });
    if (this.#skipsRequest) return HeadersStatus.Continue;
    return this.#inner.decodeHeaders?.(headers, endStream) ?? HeadersStatus.Continue;
  }

  encodeHeaders(response: HeaderBlock, endStream: boolean): HeadersStatus {
    if (!this.#isDecided) this.#skipsResponse = this.#decideByResponse(response);
    if (this.#skipsResponse) return HeadersStatus.Continue;
    return this.#inner.encodeHeaders?.(response, endStream) ?? HeadersStatus.Continue;
  }

  onRequestBlocked(): void {
    this.#inner.onRequestBlocked?.();
  }
  onRequestDrained(): void {
    this.#inner.onRequestDrained?.();
  }
  onResponseBlocked(): void {
    this.#inner.onResponseBlocked?.();
  }
  onResponseDrained(): void {
    this.#inner.onResponseDrained?.();
  }
  onDestroy(): void {
    this.#inner.onDestroy?.();
  }

  #decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    return this.#skipsRequest ? DataStatus.Continue : this.#inner.decodeData!(offset, length, endStream);
  }

  #decodeTrailers(trailers: HeaderBlock): HeadersStatus {
    return this.#skipsRequest ? HeadersStatus.Continue : this.#inner.decodeTrailers!(trailers);
  }

  #encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    return this.#skipsResponse ? DataStatus.Continue : this.#inner.encodeData!(offset, length, endStream);
  }

  #encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    return this.#skipsResponse ? HeadersStatus.Continue : this.#inner.encodeTrailers!(trailers);
  }

  get #common(): { info: StreamControl['info']; stats: ThreadStats } {
    return { info: this.#stream.info, stats: this.#stats };
  }

  /** Returns whether the filter is skipped, as far as is known. */
  #decide(matched: Matched): boolean {
    const found = this.#skip.tree.find(matched);
    // As in Envoy, a matcher that lacks a value has not decided, and the filter runs.
    this.#isDecided = matched.lacksResponse !== true;
    return this.#isDecided && found === SKIPPED;
  }

  /** While it runs, the stream has this response, which expressions read. */
  #decideByResponse(response: HeaderBlock): boolean {
    const { info } = this.#stream;
    const { responseCode, responseHeaders } = info;
    const isLocalReply = info.responseCodeDetails !== VIA_UPSTREAM;
    info.responseCode = response.status;
    info.responseHeaders = response;
    try {
      const headers = info.requestHeaders as HeaderBlock | undefined;
      return this.#decide({ ...this.#common, headers, response, isLocalReply });
    } finally {
      info.responseCode = responseCode;
      info.responseHeaders = responseHeaders;
    }
  }
}
