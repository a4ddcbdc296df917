// The grpc_json_transcoder filter of one stream: its request becomes a gRPC call, and the response of that JSON.

import {
  DataStatus,
  grpcStatusIn,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  isGrpcRequest,
  isGrpcResponse,
  type Memory,
  Method,
  Protocol,
  ResponseFlag,
  type StreamControl,
} from '../../../sdk.js';
import { httpStatusOf } from './http-status.js';
import { printMessage } from './message-printer.js';
import { findCall, type RequestCall } from './request-call.js';
import { type RequestError, RequestTranslator } from './request-translator.js';
import { ResponseTranslator } from './response-translator.js';
import { decodeDetails, decodeMessage, encodeStatus } from './status-message.js';
import type { TranscoderGauges } from './transcoder-gauges.js';
import { StreamForm, type TranscoderRules } from './transcoder-rules.js';

const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_TYPE = headerKey('content-type');
const GRPC_MESSAGE = headerKey('grpc-message');
const GRPC_STATUS = headerKey('grpc-status');
const GRPC_STATUS_DETAILS = headerKey('grpc-status-details-bin');
const ORIGINAL_METHOD = headerKey('x-envoy-original-method');
const ORIGINAL_PATH = headerKey('x-envoy-original-path');
const TE = headerKey('te');
const TRAILER = headerKey('trailer');

const EARLY = 'early_grpc_json_transcode_failure';
const LATE = 'grpc_json_transcode_failure';

export class TranscoderFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: TranscoderRules;
  readonly #gauges: TranscoderGauges;
  readonly #bufferLimit: number;
  #memory!: Memory;
  #call: RequestCall | undefined;
  #request!: RequestTranslator;
  #response!: ResponseTranslator;
  /** The head of the request has been passed on. */
  #isRouted = false;
  /** The response passes as it is. */
  #isOff = false;
  /** The head of the response, while it is held. */
  #responseHead: HeaderBlock | undefined;
  #hasResponseBody = false;
  #isResponseHeadSent = false;
  /** Bytes that the gauges count. */
  #requestBytes = 0;
  #responseBytes = 0;

  /** `bufferLimit`: of bodies, unless the rules have another one. */
  constructor(stream: StreamControl, rules: TranscoderRules, gauges: TranscoderGauges, bufferLimit: number) {
    this.#stream = stream;
    this.#rules = rules;
    this.#gauges = gauges;
    this.#bufferLimit = bufferLimit;
  }

  // ── The request ──────────────────────────────────────────────────────────────────────────────────────────────────

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    if (headers.upgrade || headers.method === Method.Connect || isGrpcRequest(headers)) return HeadersStatus.Continue;
    const path = headers.pathText();
    const method = headers.methodText();
    const call = findCall(this.#rules, method, path);
    if ('isRefused' in call) {
      if (!call.isRefused) return HeadersStatus.Continue;
      this.#refuse(call.status, call.message, `${EARLY}{${call.status === 404 ? 'NOT_FOUND' : 'INVALID_ARGUMENT'}}`);
      return HeadersStatus.StopIteration;
    }
    this.#memory = headers.memory;
    this.#call = call;
    const maxBytes = this.#rules.maxRequestBytes ?? this.#bufferLimit;
    this.#request = new RequestTranslator(this.#rules, call, headers.get(CONTENT_TYPE) ?? '', maxBytes);
    this.#response = new ResponseTranslator(this.#rules, call.bound);
    headers.remove(CONTENT_LENGTH);
    headers.set(CONTENT_TYPE, 'application/grpc');
    headers.set(ORIGINAL_PATH, path);
    headers.add(ORIGINAL_METHOD, method);
    headers.setPath(call.bound.path);
    headers.setMethod(Method.Post, 'POST');
    headers.set(TE, 'trailers');
    this.#expandLimit();
    if (endStream && !this.#addMessages(this.#wholeOrLast(NOTHING), EARLY)) return HeadersStatus.StopIteration;
    // Only a head that is held can get another route.
    if (endStream || this.#request.isStreaming) queueMicrotask(() => this.#stream.run(() => this.#release()));
    return HeadersStatus.StopIteration;
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#call === undefined) return DataStatus.Continue;
    const bytes = this.#memory.bytes.subarray(offset, offset + length);
    if (this.#request.isStreaming) {
      this.#addMessages(this.#request.push(bytes, endStream), LATE);
      if (this.#isRouted) this.#stream.continueDecoding();
      return DataStatus.StopNoBuffer;
    }
    if (this.#isRequestTooLarge(this.#stream.heldRequestBytes() + length)) return DataStatus.StopNoBuffer;
    if (!endStream) {
      this.#countRequest(this.#requestBytes + length);
      return DataStatus.StopAndBuffer;
    }
    const held = this.#stream.readRequestBytes();
    this.#stream.dropRequestBytes();
    const body = held.length === 0 ? Buffer.from(bytes) : Buffer.concat([held, bytes]);
    if (this.#addMessages(this.#request.whole(body), LATE)) this.#release();
    return DataStatus.StopNoBuffer;
  }

  decodeTrailers(): HeadersStatus {
    if (this.#call === undefined) return HeadersStatus.Continue;
    const held = this.#request.isStreaming ? NOTHING : this.#stream.readRequestBytes();
    if (!this.#request.isStreaming) this.#stream.dropRequestBytes();
    if (!this.#addMessages(this.#wholeOrLast(held), LATE)) return HeadersStatus.StopIteration;
    if (this.#isRouted) return HeadersStatus.Continue;
    if (!this.#request.isStreaming) this.#release();
    return HeadersStatus.StopIteration;
  }

  #wholeOrLast(body: Buffer): Buffer | RequestError {
    return this.#request.isStreaming ? this.#request.push(body, true) : this.#request.whole(body);
  }

  /** Adds messages to the request, or refuses it. Returns whether it continues. */
  #addMessages(messages: Buffer | RequestError, details: string): boolean {
    if ('error' in messages) {
      if (messages.isTooLarge === true) this.#refuseSize();
      else this.#refuse(400, messages.error, `${details}{INVALID_ARGUMENT}`);
      return false;
    }
    if (this.#isRequestTooLarge(this.#request.heldBytes)) return false;
    this.#countRequest(this.#request.heldBytes);
    if (messages.length === 0) return true;
    if (this.#isRouted) this.#stream.passRequestBytes(messages);
    else {
      // A message may be longer than its JSON.
      this.#stream.setRequestBufferLimit(
        Math.max(this.#bufferLimit, this.#stream.heldRequestBytes() + messages.length),
      );
      this.#stream.addRequestBytes(messages);
    }
    return true;
  }

  #release(): void {
    this.#isRouted = true;
    if (this.#rules.keepsRoute) this.#stream.continueDecoding();
    else this.#stream.continueWithNewRoute();
  }

  #expandLimit(): void {
    const { maxRequestBytes = 0, maxResponseBytes = 0 } = this.#rules;
    if (maxRequestBytes > this.#bufferLimit) this.#stream.setRequestBufferLimit(maxRequestBytes);
    if (maxResponseBytes > this.#bufferLimit) this.#stream.setResponseBufferLimit(maxResponseBytes);
  }

  #isRequestTooLarge(bytes: number): boolean {
    if (bytes <= (this.#rules.maxRequestBytes ?? this.#bufferLimit)) return false;
    this.#refuseSize();
    return true;
  }

  #refuseSize(): void {
    this.#refuse(413, TOO_LARGE_REQUEST, `${LATE}{request_buffer_size_limit_reached}`);
  }

  // ── The response ─────────────────────────────────────────────────────────────────────────────────────────────────

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    if (this.#isOff || this.#call === undefined) return HeadersStatus.Continue;
    if (!isGrpcResponse(headers, endStream)) {
      this.#isOff = true;
      return HeadersStatus.Continue;
    }
    this.#memory = headers.memory;
    this.#responseHead = headers;
    const { method, returnsHttpBody } = this.#call.bound;
    const isStreaming = method.serverStreaming;
    const type = isStreaming && this.#rules.streamForm === StreamForm.Events ? 'text/event-stream' : 'application/json';
    if (!endStream || isStreaming) headers.set(CONTENT_TYPE, type);
    // The body gets another length.
    headers.remove(CONTENT_LENGTH);
    if (endStream) {
      this.#finish(headers, true);
      return HeadersStatus.Continue;
    }
    if (!isStreaming || returnsHttpBody) return HeadersStatus.StopIteration;
    this.#isResponseHeadSent = true;
    return HeadersStatus.Continue;
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#isOff || this.#call === undefined) return DataStatus.Continue;
    this.#hasResponseBody = true;
    this.#response.push(this.#memory.bytes.subarray(offset, offset + length));
    if (this.#isResponseTooLarge()) return DataStatus.StopNoBuffer;
    this.#countResponse(this.#response.heldBytes);
    const { serverStreaming } = this.#call.bound.method;
    if (!serverStreaming && !endStream) return DataStatus.StopNoBuffer;
    const body = endStream ? this.#response.end() : this.#response.take();
    if ('error' in body) {
      this.#refuseResponse(body.error);
      return DataStatus.StopNoBuffer;
    }
    // An HTTP body begins with its content type.
    if (this.#passBody(body) || endStream) this.#stream.continueEncoding();
    return DataStatus.StopNoBuffer;
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    if (this.#isOff || this.#call === undefined) return HeadersStatus.Continue;
    this.#finish(trailers, false);
    return this.#isOff ? HeadersStatus.StopIteration : HeadersStatus.Continue;
  }

  /** Passes a part of the body on. Returns whether the head may be passed on. */
  #passBody(body: Buffer): boolean {
    this.#countResponse(this.#response.heldBytes);
    const { contentType } = this.#response;
    if (this.#isResponseHeadSent) {
      this.#stream.passResponseBytes(body);
      return true;
    }
    const head = this.#responseHead!;
    if (contentType !== undefined) head.set(CONTENT_TYPE, contentType);
    if (body.length > 0) {
      this.#stream.setResponseBufferLimit(Math.max(this.#bufferLimit, body.length));
      this.#stream.addResponseBytes(body);
    }
    const { method } = this.#call!.bound;
    if (method.serverStreaming && contentType === undefined) return false;
    this.#isResponseHeadSent = method.serverStreaming;
    return true;
  }

  /** Called with the status of the call: in trailers, or in a head that has no body. */
  #finish(status: HeaderBlock, isHead: boolean): void {
    const grpcStatus = grpcStatusIn(status, GRPC_STATUS);
    const { method } = this.#call!.bound;
    const head = this.#responseHead!;
    if (this.#convertStatus(grpcStatus, status, isHead)) return;
    const body = this.#response.end();
    if ('error' in body) return this.#refuseResponse(body.error);
    if (this.#isResponseHeadSent) return this.#stream.passResponseBytes(body);
    this.#passBody(body);
    if (method.serverStreaming && !isHead) return;
    const isValid = grpcStatus !== undefined && grpcStatus >= 0;
    head.setStatus(isValid ? httpStatusOf(grpcStatus) : 503);
    if (!isHead) {
      if (isValid) head.set(GRPC_STATUS, String(grpcStatus));
      const message = status.get(GRPC_MESSAGE);
      if (message !== undefined) head.set(GRPC_MESSAGE, message);
    }
    if (!this.#isHttp2()) head.remove(TRAILER);
    if (!method.serverStreaming) head.set(CONTENT_LENGTH, String(body.length));
  }

  /** Makes a google.rpc.Status the body of an error, if the response has no other. Returns whether it has. */
  #convertStatus(grpcStatus: number | undefined, status: HeaderBlock, isHead: boolean): boolean {
    if (!this.#rules.convertsStatus || this.#hasResponseBody) return false;
    if (grpcStatus === undefined || grpcStatus <= 0) return false;
    const json = this.#statusJson(grpcStatus, status);
    if (json === undefined) return false;
    if (this.#isResponseHeadSent) {
      this.#stream.passResponseBytes(json);
      return true;
    }
    const head = this.#responseHead!;
    head.setStatus(httpStatusOf(grpcStatus));
    if (isHead) for (const key of [GRPC_STATUS, GRPC_MESSAGE, GRPC_STATUS_DETAILS]) head.remove(key);
    if (!this.#isHttp2()) head.remove(TRAILER);
    head.set(CONTENT_TYPE, 'application/json');
    head.set(CONTENT_LENGTH, String(json.length));
    this.#stream.addResponseBytes(json);
    return true;
  }

  #statusJson(code: number, status: HeaderBlock): Buffer | undefined {
    const details = decodeDetails(status.get(GRPC_STATUS_DETAILS) ?? '');
    const message = decodeMessage(status.get(GRPC_MESSAGE) ?? '');
    const { print, registry, status: type } = this.#rules;
    const hasDetails = details !== undefined && details.length > 0;
    try {
      const json = printMessage(type, hasDetails ? details : encodeStatus(code, message), print, registry.messages);
      return Buffer.from(json);
    } catch {
      // As in Envoy, a status that has no JSON form stays in its headers.
      return undefined;
    }
  }

  #isResponseTooLarge(): boolean {
    if (this.#response.heldBytes <= (this.#rules.maxResponseBytes ?? this.#bufferLimit)) return false;
    this.#refuse(500, TOO_LARGE_RESPONSE, `${LATE}{response_buffer_size_limit_reached}`);
    return true;
  }

  #isHttp2(): boolean {
    return this.#stream.info.protocol === Protocol.Http2;
  }

  // ── Ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  #refuseResponse(error: string): void {
    this.#refuse(502, error, `${LATE}{INVALID_ARGUMENT}`);
  }

  /** `message`: one character a byte. */
  #refuse(status: number, message: string, details: string): void {
    this.#isOff = true;
    this.#stream.sendLocalReply({
      status,
      body: Buffer.from(message, 'latin1'),
      details,
      flags: ResponseFlag.None,
    });
  }

  onDestroy(): void {
    this.#countRequest(0);
    this.#countResponse(0);
  }

  #countRequest(bytes: number): void {
    if (bytes !== this.#requestBytes) this.#gauges.changeRequest(bytes - this.#requestBytes);
    this.#requestBytes = bytes;
  }

  #countResponse(bytes: number): void {
    if (bytes !== this.#responseBytes) this.#gauges.changeResponse(bytes - this.#responseBytes);
    this.#responseBytes = bytes;
  }
}

const NOTHING = Buffer.alloc(0);
const TOO_LARGE_REQUEST =
  "Request rejected because the transcoder's internal buffer size exceeds the configured limit.";
const TOO_LARGE_RESPONSE =
  "Response not transcoded because the transcoder's internal buffer size exceeds the configured limit.";
