// The grpc_http1_bridge filter of one stream. The response is held until its trailers have arrived, for its head gets their status.

import { FRAME_HEADER_BYTES, frameHeader } from '../../../grpc/frame-scanner.js';
import {
  BodyKind,
  DataStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  isGrpcRequest,
  isGrpcResponse,
  type StreamControl,
} from '../../../sdk.js';

const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_TYPE = headerKey('content-type');
const GRPC_MESSAGE = headerKey('grpc-message');
const GRPC_STATUS = headerKey('grpc-status');

export interface BridgeRules {
  /** Requests of plain protobuf become gRPC requests. */
  readonly upgradesProtobuf: boolean;
  /** Hosts get the path without its query. */
  readonly ignoresQuery: boolean;
}

export class GrpcHttp1BridgeFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: BridgeRules;
  #isBridging = false;
  /** The client sends and receives messages without frames. */
  #isFraming = false;
  /** Length of the request's message; undefined: its end shows it. */
  #messageBytes: number | undefined;
  #hasFrameHeader = false;
  /** The head of the response while it is held. */
  #head: HeaderBlock | undefined;
  /** Bytes of a frame's header that still have to be dropped from the response. */
  #headerLeft = 0;

  constructor(stream: StreamControl, rules: BridgeRules) {
    this.#stream = stream;
    this.#rules = rules;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    this.#isFraming = this.#rules.upgradesProtobuf && headers.get(CONTENT_TYPE) === 'application/x-protobuf';
    this.#isBridging = this.#isFraming || isGrpcRequest(headers);
    if (!this.#isBridging) return HeadersStatus.Continue;
    if (this.#rules.ignoresQuery) headers.setPath(headers.pathText().replace(/\?.*/s, ''));
    if (!this.#isFraming) return HeadersStatus.Continue;
    if (headers.bodyKind === BodyKind.Length) this.#messageBytes = headers.contentLength;
    headers.set(CONTENT_TYPE, 'application/grpc');
    headers.remove(CONTENT_LENGTH);
    return HeadersStatus.Continue;
  }

  decodeData(_offset: number, length: number, endStream: boolean): DataStatus {
    if (!this.#isFraming || this.#hasFrameHeader) return DataStatus.Continue;
    if (this.#messageBytes === undefined && !endStream) return DataStatus.StopAndBuffer;
    this.#passFrameHeader(this.#messageBytes ?? this.#stream.heldRequestBytes() + length);
    return DataStatus.Continue;
  }

  decodeTrailers(): HeadersStatus {
    if (this.#isFraming && !this.#hasFrameHeader) this.#passFrameHeader(this.#stream.heldRequestBytes());
    return HeadersStatus.Continue;
  }

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    if (!this.#isBridging || endStream) return HeadersStatus.Continue;
    this.#head = headers;
    if (this.#isFraming && isGrpcResponse(headers, false)) this.#headerLeft = FRAME_HEADER_BYTES;
    return HeadersStatus.StopIteration;
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#head === undefined) return DataStatus.Continue;
    // Without trailers there is no status: the response is passed on as it is.
    if (endStream) this.#stream.continueEncoding();
    if (this.#headerLeft === 0) return DataStatus.StopAndBuffer;
    const dropped = Math.min(this.#headerLeft, length);
    this.#headerLeft -= dropped;
    const { bytes } = this.#head.memory;
    this.#stream.addResponseBytes(bytes.subarray(offset + dropped, offset + length));
    return DataStatus.StopNoBuffer;
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    const head = this.#head;
    if (head === undefined) return HeadersStatus.Continue;
    const status = trailers.get(GRPC_STATUS);
    if (status !== undefined) {
      if (!/^0+$/.test(status)) head.setStatus(503);
      head.set(GRPC_STATUS, status);
    }
    const message = trailers.get(GRPC_MESSAGE);
    if (message !== undefined) head.set(GRPC_MESSAGE, message);
    head.set(CONTENT_LENGTH, String(this.#stream.heldResponseBytes()));
    return HeadersStatus.Continue;
  }

  #passFrameHeader(messageBytes: number): void {
    this.#hasFrameHeader = true;
    this.#stream.passRequestBytes(frameHeader(messageBytes));
  }
}
