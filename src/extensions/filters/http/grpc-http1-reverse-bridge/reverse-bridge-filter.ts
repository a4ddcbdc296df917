// The grpc_http1_reverse_bridge filter of one stream. The request loses its frame, and the response gets a frame and trailers.

import { FRAME_HEADER_BYTES, frameHeader } from '../../../grpc/frame-scanner.js';
import {
  DataStatus,
  grpcStatusOf,
  type HeaderBlock,
  type HeaderKey,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  isGrpcRequest,
  type Memory,
  ResponseFlag,
  type StreamControl,
} from '../../../sdk.js';

const ACCEPT = headerKey('accept');
const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_TYPE = headerKey('content-type');
const GRPC_STATUS = headerKey('grpc-status');

const OK = 0;
const UNKNOWN = 2;
const INTERNAL = 13;

export interface ReverseBridgeRules {
  /** What hosts receive and send. */
  readonly contentType: string;
  /** Hosts get and send messages without frames. */
  readonly withholdsFrames: boolean;
  /** A response header with the length of the message, so that it need not be buffered. */
  readonly sizeHeader: HeaderKey | undefined;
}

export class ReverseBridgeFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: ReverseBridgeRules;
  /** The content type of the client; undefined: the stream is not bridged. */
  #clientType: string | undefined;
  /** Bytes of the frame's header that the request has not sent yet. */
  #headerLeft = 0;
  /** Its route has been chosen again: its head has been passed on. */
  #isRouted = false;
  #memory!: Memory;
  #grpcStatus = OK;
  /** The response gets a frame, whose header has not been passed on yet. */
  #needsFrame = false;
  /** Length of the response's message; undefined: its end shows it. */
  #messageBytes: number | undefined;
  #received = 0;

  constructor(stream: StreamControl, rules: ReverseBridgeRules) {
    this.#stream = stream;
    this.#rules = rules;
  }

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    if (endStream || !isGrpcRequest(headers)) return HeadersStatus.Continue;
    const { contentType, withholdsFrames } = this.#rules;
    this.#clientType = headers.get(CONTENT_TYPE)!;
    this.#memory = headers.memory;
    headers.set(CONTENT_TYPE, contentType);
    headers.set(ACCEPT, contentType);
    if (withholdsFrames) {
      this.#headerLeft = FRAME_HEADER_BYTES;
      changeLength(headers, -FRAME_HEADER_BYTES);
    }
    // The route is chosen again, by the new type. Only a head that is held can get another route.
    queueMicrotask(() => this.#stream.run(() => this.#chooseRoute()));
    return HeadersStatus.StopIteration;
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#clientType === undefined) return DataStatus.Continue;
    if (this.#headerLeft === 0) return this.#isRouted ? DataStatus.Continue : DataStatus.StopAndBuffer;
    const dropped = Math.min(this.#headerLeft, length);
    this.#headerLeft -= dropped;
    if (this.#headerLeft > 0) {
      if (endStream) this.#refuse(200, 'invalid request body', 'grpc_bridge_data_too_small', UNKNOWN);
      return DataStatus.StopNoBuffer;
    }
    const rest = this.#memory.bytes.subarray(offset + dropped, offset + length);
    if (!this.#isRouted) this.#stream.addRequestBytes(rest);
    else {
      this.#stream.passRequestBytes(rest);
      this.#stream.continueDecoding();
    }
    return DataStatus.StopNoBuffer;
  }

  decodeTrailers(): HeadersStatus {
    if (this.#clientType === undefined || this.#isRouted) return HeadersStatus.Continue;
    return HeadersStatus.StopIteration;
  }

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    if (this.#clientType === undefined) return HeadersStatus.Continue;
    const { contentType, sizeHeader, withholdsFrames } = this.#rules;
    const type = headers.get(CONTENT_TYPE);
    if (type !== contentType) {
      const found = type === undefined ? 'no content-type header' : `unsupported content-type ${type}`;
      const text = `envoy reverse bridge: upstream responded with ${found}, status code ${headers.status}`;
      return this.#refuseResponse(text, 'grpc_bridge_content_type_wrong', UNKNOWN);
    }
    if (withholdsFrames) {
      if (sizeHeader !== undefined) {
        const size = headers.get(sizeHeader) ?? '';
        if (!/^[0-9]{1,10}$/.test(size) || Number(size) > MAX_MESSAGE_BYTES) {
          const text = 'envoy reverse bridge: upstream did not set content length';
          return this.#refuseResponse(text, 'grpc_bridge_content_length_missing', INTERNAL);
        }
        this.#messageBytes = Number(size);
        headers.set(CONTENT_LENGTH, String(this.#messageBytes + FRAME_HEADER_BYTES));
      } else {
        this.#messageBytes = changeLength(headers, FRAME_HEADER_BYTES);
      }
      this.#needsFrame = true;
    }
    headers.set(CONTENT_TYPE, this.#clientType);
    // A 200 of plain HTTP is a success, which gRPC's mapping does not have.
    this.#grpcStatus = headers.status === 200 ? OK : grpcStatusOf(headers.status);
    headers.setStatus(200);
    if (!endStream) return HeadersStatus.Continue;
    if (withholdsFrames) this.#stream.addResponseBytes(frameHeader(0));
    this.#addStatus(this.#stream.addResponseTrailers());
    return HeadersStatus.Continue;
  }

  encodeData(_offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#clientType === undefined) return DataStatus.Continue;
    this.#received += length;
    if (this.#rules.withholdsFrames && !this.#passFrame(length, endStream)) return DataStatus.StopAndBuffer;
    if (endStream) this.#addStatus(this.#stream.addResponseTrailers());
    return DataStatus.Continue;
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    if (this.#clientType === undefined) return HeadersStatus.Continue;
    if (this.#rules.withholdsFrames && !this.#passFrame(0, true)) return HeadersStatus.StopIteration;
    this.#addStatus(trailers);
    return HeadersStatus.Continue;
  }

  #chooseRoute(): void {
    this.#isRouted = true;
    this.#stream.continueWithNewRoute();
  }

  /** Passes the header of the frame on before the message. Returns whether the message may follow; it may not if its length is wrong or unknown. */
  #passFrame(length: number, isLast: boolean): boolean {
    if (isLast && this.#messageBytes !== undefined && this.#messageBytes !== this.#received) {
      // The client has the length already: it must see that the response is not complete.
      this.#refuse(502, 'the response has another length', 'grpc_bridge_content_length_wrong', INTERNAL);
      return false;
    }
    if (!this.#needsFrame) return true;
    if (this.#messageBytes === undefined && !isLast) return false;
    this.#needsFrame = false;
    this.#stream.passResponseBytes(frameHeader(this.#messageBytes ?? this.#stream.heldResponseBytes() + length));
    return true;
  }

  #addStatus(trailers: HeaderBlock | undefined): void {
    trailers?.set(GRPC_STATUS, String(this.#grpcStatus));
  }

  #refuseResponse(body: string, details: string, grpcStatus: number): HeadersStatus {
    this.#clientType = undefined;
    this.#refuse(200, body, details, grpcStatus);
    return HeadersStatus.StopIteration;
  }

  #refuse(status: number, body: string, details: string, grpcStatus: number): void {
    this.#stream.sendLocalReply({ status, body, details, flags: ResponseFlag.None, grpcStatus });
  }
}

/** A message of gRPC has a length of 32 bits. */
const MAX_MESSAGE_BYTES = 2 ** 32 - 1;

/** Changes the content-length. Returns the former one; undefined if there is none, or none that can be changed. */
function changeLength(headers: HeaderBlock, change: number): number | undefined {
  const text = headers.get(CONTENT_LENGTH);
  const length = text === undefined ? Number.NaN : Number(text);
  if (!(length + change >= 0)) return undefined;
  headers.set(CONTENT_LENGTH, String(length + change));
  return length;
}
