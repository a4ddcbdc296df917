// The tap filter of one stream: records the messages while the stream may match, and sends the trace if it does.

import {
  type Clock,
  DataStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type Memory,
  type Random,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import type { ActiveTap } from './active-tap.js';
import { type MatchState, Part, Truth } from './matching/match-rules.js';
import { RecordedMessage } from './recorded-message.js';
import { TapStats } from './stats.js';
import { Piece, type TracedBody, type TracedHeader } from './traces/trace.js';
import { tracedRequestHeaders, tracedResponseHeaders, tracedTrailers } from './traces/traced-headers.js';

/** The common context of all filters of one configuration. */
export interface TapContext {
  readonly clock: Clock;
  readonly memory: Memory;
  readonly random: Random;
  readonly recordsTime: boolean;
  readonly recordsConnection: boolean;
  readonly stats: Scope;
}

/** Trace IDs are integers below 2^53. */
const ID_HIGH_RANGE = 2 ** 21;

export class TapFilter implements HttpFilter {
  readonly #context: TapContext;
  readonly #stream: StreamControl;
  readonly #tap: ActiveTap;
  readonly #match: MatchState;
  readonly #request: RecordedMessage;
  readonly #response: RecordedMessage;
  readonly #traceId: number;
  /** The stream does not match, or its trace is complete. */
  #isDone = false;
  /** Pieces are sent as they arrive. */
  #isSending = false;
  /** A piece was lost: the rest of the stream is not sent. */
  #hasLost = false;

  constructor(context: TapContext, stream: StreamControl, tap: ActiveTap) {
    const { random } = context;
    this.#context = context;
    this.#stream = stream;
    this.#tap = tap;
    this.#match = tap.rules.begin();
    this.#request = new RecordedMessage(tap, tap.maxRequestBytes);
    this.#response = new RecordedMessage(tap, tap.maxResponseBytes);
    this.#traceId = tap.isStreaming ? random.below(ID_HIGH_RANGE) * 2 ** 32 + random.nextUint32() : 0;
  }

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    this.#match.onHeaders(Part.RequestHeaders, headers);
    if (endStream) this.#requestEnded();
    if (this.#mayMatch()) this.#headers(this.#request, Piece.RequestHeaders, tracedRequestHeaders(headers));
    return HeadersStatus.Continue;
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (!this.#isDone) this.#body(this.#request, Part.RequestBody, Piece.RequestBody, offset, length);
    if (endStream) this.#requestEnded();
    if (endStream && this.#mayMatch()) this.#startSending();
    return DataStatus.Continue;
  }

  decodeTrailers(trailers: HeaderBlock): HeadersStatus {
    this.#match.onHeaders(Part.RequestTrailers, trailers);
    this.#requestEnded();
    if (this.#mayMatch()) this.#trailers(this.#request, Piece.RequestTrailers, tracedTrailers(trailers));
    return HeadersStatus.Continue;
  }

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    this.#match.onHeaders(Part.ResponseHeaders, headers);
    if (endStream) this.#responseEnded();
    if (this.#mayMatch()) this.#headers(this.#response, Piece.ResponseHeaders, tracedResponseHeaders(headers));
    return HeadersStatus.Continue;
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (!this.#isDone) this.#body(this.#response, Part.ResponseBody, Piece.ResponseBody, offset, length);
    if (endStream) this.#responseEnded();
    if (endStream && this.#mayMatch()) this.#startSending();
    return DataStatus.Continue;
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    this.#match.onHeaders(Part.ResponseTrailers, trailers);
    this.#responseEnded();
    if (this.#mayMatch()) this.#trailers(this.#response, Piece.ResponseTrailers, tracedTrailers(trailers));
    return HeadersStatus.Continue;
  }

  onDestroy(): void {
    this.#requestEnded();
    this.#match.onEnd(Part.ResponseHeaders);
    this.#responseEnded();
    if (this.#mayMatch()) {
      this.#context.stats.increment(TapStats.at.rq_tapped);
      if (this.#tap.isStreaming) this.#startSending();
      else this.#sendBuffered();
    }
    this.#discard();
  }

  /** Returns whether the stream matches or may still match. If not, drops the recorded messages. */
  #mayMatch(): boolean {
    if (this.#isDone) return false;
    if (!this.#tap.isOver && this.#match.verdict !== Truth.False) return true;
    this.#discard();
    return false;
  }

  #discard(): void {
    this.#isDone = true;
    this.#request.clear();
    this.#response.clear();
  }

  #requestEnded(): void {
    this.#match.onEnd(Part.RequestHeaders);
    this.#match.onEnd(Part.RequestBody);
    this.#match.onEnd(Part.RequestTrailers);
  }

  #responseEnded(): void {
    this.#match.onEnd(Part.ResponseBody);
    this.#match.onEnd(Part.ResponseTrailers);
  }

  #headers(message: RecordedMessage, piece: Piece, headers: readonly TracedHeader[]): void {
    if (this.#isSending) return this.#sendPiece(piece, headers);
    message.headers = headers;
    if (this.#context.recordsTime) message.receivedMs = this.#context.clock.realtimeMs;
    this.#startSending();
  }

  #body(message: RecordedMessage, part: Part, piece: Piece, offset: number, length: number): void {
    if (length === 0) return;
    const bytes = this.#context.memory.bytes.subarray(offset, offset + length);
    if (this.#match.needsBody(part)) this.#match.onBody(part, bytes);
    if (!this.#mayMatch()) return;
    if (this.#isSending) {
      const limit = message === this.#request ? this.#tap.maxRequestBytes : this.#tap.maxResponseBytes;
      return this.#sendPiece(piece, { bytes: bytes.subarray(0, limit), isTruncated: length > limit });
    }
    message.addBody(bytes);
    this.#startSending();
  }

  #trailers(message: RecordedMessage, piece: Piece, trailers: readonly TracedHeader[]): void {
    if (this.#isSending) return this.#sendPiece(piece, trailers);
    message.trailers = trailers;
    this.#startSending();
  }

  /** Sends the recorded pieces once the stream is known to match. Later pieces are sent directly. */
  #startSending(): void {
    if (this.#isSending || !this.#tap.isStreaming || this.#match.verdict !== Truth.True) return;
    this.#isSending = true;
    const { headers, body, trailers } = this.#request;
    const { headers: responseHeaders, body: responseBody, trailers: responseTrailers } = this.#response;
    if (headers !== undefined) this.#sendPiece(Piece.RequestHeaders, headers);
    if (body !== undefined) this.#sendPiece(Piece.RequestBody, body);
    if (trailers !== undefined) this.#sendPiece(Piece.RequestTrailers, trailers);
    if (responseHeaders !== undefined) this.#sendPiece(Piece.ResponseHeaders, responseHeaders);
    if (responseBody !== undefined) this.#sendPiece(Piece.ResponseBody, responseBody);
    if (responseTrailers !== undefined) this.#sendPiece(Piece.ResponseTrailers, responseTrailers);
    this.#request.clear();
    this.#response.clear();
  }

  #sendPiece(piece: Piece, content: readonly TracedHeader[] | TracedBody): void {
    if (this.#hasLost) return;
    const segment = this.#tap.format.segment({ traceId: this.#traceId, piece, content });
    this.#hasLost = !this.#tap.send(segment);
  }

  #sendBuffered(): void {
    const { info } = this.#stream;
    const connection = this.#context.recordsConnection
      ? { local: info.downstreamLocalAddress, remote: info.downstream?.remoteText ?? '' }
      : undefined;
    const trace = { request: this.#request.traced, response: this.#response.traced, connection };
    this.#tap.send(this.#tap.format.buffered(trace));
  }
}
