// The compressor filter of one stream: compresses the request if its configuration says so, and the response if the client accepts it.

import { BodyTransform, requestBody, responseBody } from '../../../compression/body-transform.js';
import { forbidsTransform } from '../../../compression/forbids-transform.js';
import type { CompressionLibrary } from '../../../compression/library.js';
import {
  DataStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  type Memory,
  ResponseFlag,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import { Choice } from './accept-encoding.js';
import type { ChainEncodings } from './chain-encodings.js';
import type { CompressorRules, DirectionRules, RouteRules } from './rules.js';
import { type BodySlots, BodyStats, ResponseStats } from './stats.js';

const ACCEPT_ENCODING = headerKey('accept-encoding');
const CONTENT_ENCODING = headerKey('content-encoding');
const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_TYPE = headerKey('content-type');
const ETAG = headerKey('etag');
const STATUS_HEADER = headerKey('x-envoy-compression-status');
const VARY = headerKey('vary');
const ACCEPTS = 'Accept-Encoding';

const { at } = ResponseStats;
const CHOICES = {
  [Choice.Wildcard]: at.header_wildcard,
  [Choice.Identity]: at.header_identity,
  [Choice.None]: at.header_not_valid,
};

/** The stats of a filter. */
export interface CompressorStats {
  readonly response: Scope;
  readonly requestBodies: Scope;
  readonly responseBodies: Scope;
  readonly responseBodySlots: BodySlots;
}

export class CompressorFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: CompressorRules;
  readonly #route: RouteRules | undefined;
  readonly #stats: CompressorStats;
  readonly #encodings: ChainEncodings;
  readonly #library: CompressionLibrary;
  #memory!: Memory;
  #acceptEncoding: string | undefined;
  #request: BodyTransform | undefined;
  #response: BodyTransform | undefined;
  #isRequestBlocked = false;
  #isResponseBlocked = false;

  constructor(
    stream: StreamControl,
    rules: CompressorRules,
    route: RouteRules | undefined,
    stats: CompressorStats,
    encodings: ChainEncodings,
  ) {
    this.#stream = stream;
    this.#rules = rules;
    this.#route = route;
    this.#stats = stats;
    this.#encodings = encodings;
    this.#library = route?.library ?? rules.library;
    encodings.add({
      encoding: this.#library.encoding,
      isPreferred: rules.isPreferred,
      types: rules.response.types,
    });
  }

  // ── The request ──────────────────────────────────────────────────────────────────────────────────────────────────

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    this.#memory = headers.memory;
    this.#acceptEncoding = headers.get(ACCEPT_ENCODING);
    const { request } = this.#rules;
    if (this.#isResponseEnabled && (this.#route?.removesAcceptEncoding ?? this.#rules.removesAcceptEncoding))
      headers.remove(ACCEPT_ENCODING);
    const { requestBodies } = this.#stats;
    this.#request =
      request !== undefined && this.#compressesRequest(headers, request, endStream)
        ? this.#transform(requestBodies, BodyStats.at, true)
        : undefined;
    if (this.#request === undefined) {
      requestBodies.increment(BodyStats.at.not_compressed);
      return HeadersStatus.Continue;
    }
    headers.remove(CONTENT_LENGTH);
    headers.add(CONTENT_ENCODING, this.#library.encoding);
    requestBodies.increment(BodyStats.at.compressed);
    return HeadersStatus.Continue;
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    return this.#write(this.#request, this.#stats.requestBodies, BodyStats.at, offset, length, endStream);
  }

  decodeTrailers(): HeadersStatus {
    return endOf(this.#request);
  }

  onRequestBlocked(): void {
    this.#isRequestBlocked = true;
    this.#request?.blocked();
  }

  onRequestDrained(): void {
    this.#isRequestBlocked = false;
    this.#request?.drained();
  }

  #compressesRequest(headers: HeaderBlock, rules: DirectionRules, endStream: boolean): boolean {
    if (endStream || headers.upgrade || !rules.enabled.value) return false;
    if (!this.#isLongEnough(headers, rules, this.#stats.requestBodies, BodyStats.at)) return false;
    return rules.types.allow(headers.get(CONTENT_TYPE)) && headers.find(CONTENT_ENCODING) < 0;
  }

  // ── The response ─────────────────────────────────────────────────────────────────────────────────────────────────

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    this.#memory = headers.memory;
    const { responseBodies, responseBodySlots: slots } = this.#stats;
    this.#response = this.#compressesResponse(headers, endStream)
      ? this.#transform(responseBodies, slots, false)
      : undefined;
    if (this.#response === undefined) {
      responseBodies.increment(slots.not_compressed);
      return HeadersStatus.Continue;
    }
    if (this.#rules.addsStatusHeader)
      this.#addStatus(headers, `Compressed;OriginalLength=${headers.get(CONTENT_LENGTH) ?? ''}`);
    this.#changeEtag(headers);
    headers.remove(CONTENT_LENGTH);
    headers.add(CONTENT_ENCODING, this.#library.encoding);
    responseBodies.increment(slots.compressed);
    return HeadersStatus.Continue;
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    const { responseBodies, responseBodySlots: slots } = this.#stats;
    return this.#write(this.#response, responseBodies, slots, offset, length, endStream);
  }

  encodeTrailers(): HeadersStatus {
    return endOf(this.#response);
  }

  onResponseBlocked(): void {
    this.#isResponseBlocked = true;
    this.#response?.blocked();
  }

  onResponseDrained(): void {
    this.#isResponseBlocked = false;
    this.#response?.drained();
  }

  onDestroy(): void {
    this.#request?.destroy();
    this.#response?.destroy();
  }

  get #isResponseEnabled(): boolean {
    return this.#route?.isEnabled ?? this.#rules.response.enabled.value;
  }

  /** Sets `vary` on responses that other requests may get compressed. */
  #compressesResponse(headers: HeaderBlock, endStream: boolean): boolean {
    const { addsStatusHeader, response } = this.#rules;
    if (!this.#isResponseEnabled || headers.status === 101) return false;
    const { responseBodies, responseBodySlots: slots } = this.#stats;
    const isLongEnough = this.#isLongEnough(headers, response, responseBodies, slots);
    const obstacle = isLongEnough ? this.#obstacle(headers) : 'ContentLengthTooSmall';
    if (obstacle !== '' && addsStatusHeader && !endStream) this.#addStatus(headers, obstacle);
    const isCompressible = obstacle === '' && headers.find(CONTENT_ENCODING) < 0 && !forbidsTransform(headers);
    // As in Envoy, the choice is counted even for a response that cannot be compressed, unless its status is in the header.
    const isChosen = !endStream && isLongEnough && (isCompressible || !addsStatusHeader) && this.#isChosen(headers);
    if (isCompressible) addVary(headers);
    return isChosen && isCompressible;
  }

  /** Returns why a response must not be compressed; '' if nothing prevents it. */
  #obstacle(headers: HeaderBlock): string {
    const { disablesOnEtag, response, uncompressibleStatuses } = this.#rules;
    if (!response.types.allow(headers.get(CONTENT_TYPE))) return 'ContentTypeNotAllowed';
    if (disablesOnEtag && headers.find(ETAG) >= 0) {
      this.#stats.response.increment(at.not_compressed_etag);
      return 'EtagNotAllowed';
    }
    return uncompressibleStatuses.has(headers.status) ? 'StatusCodeNotAllowed' : '';
  }

  /** Returns whether the client wants this coding, rather than another one of the chain or none. */
  #isChosen(headers: HeaderBlock): boolean {
    const { response: stats } = this.#stats;
    if (this.#acceptEncoding === undefined) {
      stats.increment(at.no_accept_header);
      return false;
    }
    const { choice, encoding } = this.#encodings.choose(this.#acceptEncoding, headers.get(CONTENT_TYPE));
    const isChosen = encoding === this.#library.encoding;
    if (choice !== Choice.Named) stats.increment(CHOICES[choice]);
    else stats.increment(isChosen ? at.header_compressor_used : at.header_compressor_overshadowed);
    return isChosen;
  }

  /** A strong etag names other bytes than those that are sent. */
  #changeEtag(headers: HeaderBlock): void {
    const etag = headers.get(ETAG);
    if (etag === undefined || /^w\//i.test(etag)) return;
    if (this.#rules.weakensEtag) headers.set(ETAG, `W/${etag}`);
    else headers.remove(ETAG);
  }

  #addStatus(headers: HeaderBlock, status: string): void {
    headers.add(STATUS_HEADER, `${this.#library.encoding};${status}`);
  }

  // ── Both ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  #isLongEnough(headers: HeaderBlock, rules: DirectionRules, stats: Scope, slots: BodySlots): boolean {
    const length = headers.get(CONTENT_LENGTH);
    if (length === undefined || Number(length) >= rules.minLength) return true;
    stats.increment(slots.content_length_too_small);
    return false;
  }

  /** Returns undefined if there is no memory: the body is passed on as it is. */
  #transform(stats: Scope, slots: BodySlots, isRequest: boolean): BodyTransform | undefined {
    const stream = this.#stream;
    const transform = new BodyTransform(
      this.#library,
      (act) => stream.run(act),
      isRequest ? requestBody(stream) : responseBody(stream),
      {
        outside: this.#memory.outside,
        onOutput: (bytes) => stats.add(slots.total_compressed_bytes, bytes),
        // Only a shortage of memory ends here.
        onInvalid: () =>
          stream.sendLocalReply({
            status: 500,
            body: 'the body cannot be compressed',
            details: 'compression_failed',
            flags: ResponseFlag.None,
          }),
      },
      isRequest ? this.#isRequestBlocked : this.#isResponseBlocked,
    );
    return transform.reserve() ? transform : undefined;
  }

  #write(
    transform: BodyTransform | undefined,
    stats: Scope,
    slots: BodySlots,
    offset: number,
    length: number,
    endStream: boolean,
  ): DataStatus {
    if (transform === undefined) return DataStatus.Continue;
    stats.add(slots.total_uncompressed_bytes, length);
    transform.write(this.#memory.bytes.subarray(offset, offset + length), endStream);
    return DataStatus.StopNoBuffer;
  }
}

function endOf(transform: BodyTransform | undefined): HeadersStatus {
  if (transform === undefined) return HeadersStatus.Continue;
  transform.end();
  return HeadersStatus.StopIteration;
}

/** Caches must distinguish responses by accept-encoding. As in Envoy, the element is compared with its case. */
function addVary(headers: HeaderBlock): void {
  const vary = headers.get(VARY);
  if (vary === undefined || vary === '') headers.set(VARY, ACCEPTS);
  else if (!vary.split(',').some((element) => element.trim() === ACCEPTS)) headers.set(VARY, `${vary}, ${ACCEPTS}`);
}
