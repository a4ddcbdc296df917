// The grpc_web filter of one stream. The request becomes a gRPC request. The trailers of the response become a last frame of its body, and
// a response that is not gRPC becomes a status, with its text as the message.

import { type CallStats, calledMethod, type MethodStats } from '../../../grpc/call-stats.js';
import {
  type ClusterReference,
  DataStatus,
  grpcMessage,
  grpcStatusOf,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  isGrpcResponse,
  type Memory,
  ResponseFlag,
  type StreamControl,
} from '../../../sdk.js';
import { Base64Decoder } from './base64-decoder.js';
import { Base64Frames } from './base64-frames.js';
import { trailerFrame } from './trailer-frame.js';

const ACCEPT = headerKey('accept');
const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_TYPE = headerKey('content-type');
const GRPC_ACCEPT_ENCODING = headerKey('grpc-accept-encoding');
const GRPC_MESSAGE = headerKey('grpc-message');
const GRPC_STATUS = headerKey('grpc-status');
const TE = headerKey('te');

/** The types of requests, in the forms that Envoy knows; those of base64 are the second pair. */
const BINARY_TYPES: readonly string[] = ['application/grpc-web', 'application/grpc-web+proto'];
const TEXT_TYPES: readonly string[] = ['application/grpc-web-text', 'application/grpc-web-text+proto'];

/** Bytes of a response's text that become its message. */
const MAX_MESSAGE_BYTES = 16_384;

export class GrpcWebFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #allStats: CallStats;
  #memory!: Memory;
  #isGrpcWeb = false;
  #decoder: Base64Decoder | undefined;
  #encoder: Base64Frames | undefined;
  #stats: MethodStats | undefined;
  /** The head of a response that is not gRPC, until its text is complete. */
  #plainHead: HeaderBlock | undefined;
  #text: Buffer = NOTHING;

  constructor(stream: StreamControl, stats: CallStats) {
    this.#stream = stream;
    this.#allStats = stats;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const type = headers.get(CONTENT_TYPE) ?? '';
    const isText = TEXT_TYPES.includes(type);
    if (!isText && !BINARY_TYPES.includes(type)) return HeadersStatus.Continue;
    this.#isGrpcWeb = true;
    this.#memory = headers.memory;
    if (isText) this.#decoder = new Base64Decoder();
    if (TEXT_TYPES.includes(headers.get(ACCEPT) ?? '')) this.#encoder = new Base64Frames();
    this.#stats = this.#statsOf(headers);
    headers.remove(CONTENT_LENGTH);
    headers.set(CONTENT_TYPE, 'application/grpc');
    headers.set(TE, 'trailers');
    if (headers.find(GRPC_ACCEPT_ENCODING) < 0) headers.add(GRPC_ACCEPT_ENCODING, 'identity');
    return HeadersStatus.Continue;
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#decoder === undefined) return DataStatus.Continue;
    const decoded = this.#decoder.decode(this.#memory.text(offset, offset + length), endStream);
    if (typeof decoded === 'string') {
      this.#refuse(decoded);
      return DataStatus.StopNoBuffer;
    }
    this.#stream.passRequestBytes(decoded);
    this.#stream.continueDecoding();
    return DataStatus.StopNoBuffer;
  }

  decodeTrailers(): HeadersStatus {
    if (this.#decoder?.isWithinGroup !== true) return HeadersStatus.Continue;
    this.#refuse(BAD_SIZE);
    return HeadersStatus.StopIteration;
  }

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    if (!this.#isGrpcWeb) return HeadersStatus.Continue;
    this.#memory = headers.memory;
    this.#countStatus(headers);
    const isPlain = !isGrpcResponse(headers, endStream) && !isGrpcWebResponse(headers);
    headers.set(CONTENT_TYPE, `application/grpc-web${this.#encoder === undefined ? '' : '-text'}+proto`);
    if (!isPlain) {
      // The body gets another length.
      if (!endStream) headers.remove(CONTENT_LENGTH);
      return HeadersStatus.Continue;
    }
    this.#plainHead = headers;
    if (!endStream) return HeadersStatus.StopIteration;
    this.#answerPlain();
    return HeadersStatus.Continue;
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (!this.#isGrpcWeb) return DataStatus.Continue;
    if (this.#plainHead !== undefined) {
      const part = Math.min(length, MAX_MESSAGE_BYTES - this.#text.length);
      this.#text = Buffer.concat([this.#text, this.#memory.bytes.subarray(offset, offset + part)]);
      if (endStream) this.#answerPlain();
      return DataStatus.StopNoBuffer;
    }
    if (this.#encoder === undefined) return DataStatus.Continue;
    this.#stream.passResponseBytes(this.#encoder.encode(this.#memory.bytes, offset, offset + length));
    if (endStream) this.#stream.passResponseBytes(this.#encoder.end());
    this.#stream.continueEncoding();
    return DataStatus.StopNoBuffer;
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    if (!this.#isGrpcWeb) return HeadersStatus.Continue;
    this.#countStatus(trailers);
    if (this.#plainHead !== undefined) this.#answerPlain();
    else {
      const frame = trailerFrame(trailers);
      this.#stream.passResponseBytes(this.#encoder?.end(frame) ?? frame);
    }
    for (let index = 0; index < trailers.size; index++) trailers.removeAt(index);
    return HeadersStatus.Continue;
  }

  /** Turns the response that is not gRPC into a head with a status, and passes it on. */
  #answerPlain(): void {
    const headers = this.#plainHead!;
    headers.set(GRPC_MESSAGE, grpcMessage(this.#text));
    headers.set(GRPC_STATUS, String(grpcStatusOf(headers.status)));
    headers.set(CONTENT_LENGTH, '0');
    this.#text = NOTHING;
    this.#stream.continueEncoding();
  }

  #refuse(details: string): void {
    this.#stream.sendLocalReply({
      status: 400,
      body: 'Bad gRPC-web request, invalid base64 data.',
      details,
      flags: ResponseFlag.None,
    });
  }

  #statsOf(headers: HeaderBlock): MethodStats | undefined {
    const cluster = (this.#stream.route()?.cluster as ClusterReference | undefined)?.current;
    const called = cluster && calledMethod(headers);
    return called && this.#allStats.of(cluster!, `${called.service}.${called.method}`);
  }

  #countStatus(headers: HeaderBlock): void {
    const status = this.#stats && headers.get(GRPC_STATUS);
    if (status !== undefined) this.#stats!.ended(status);
  }
}

const NOTHING = Buffer.alloc(0);
const BAD_SIZE = 'grpc_base_64_decode_failed_bad_size';

/** Returns whether a host answers in gRPC-Web by itself. As in Envoy, it is passed on only in binary form. */
function isGrpcWebResponse(headers: HeaderBlock): boolean {
  return headers.status === 200 && BINARY_TYPES.includes(headers.get(CONTENT_TYPE) ?? '');
}
