// The connect_grpc_bridge filter of one stream. A unary response is held until its trailers have arrived, for they decide about its head; a
// streaming one gets them as the last frame of its body.

import { FRAME_HEADER_BYTES, frameHeader } from '../../../grpc/frame-scanner.js';
import {
  DataStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  isGrpcRequest,
  type StreamControl,
} from '../../../sdk.js';
import { connectError, otherFields } from './connect-error.js';
import { type ConnectRequest, move, toGrpcRequest } from './connect-request.js';

const ACCEPT_ENCODING = headerKey('accept-encoding');
const CONNECT_ACCEPT_ENCODING = headerKey('connect-accept-encoding');
const CONNECT_CONTENT_ENCODING = headerKey('connect-content-encoding');
const CONTENT_ENCODING = headerKey('content-encoding');
const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_TYPE = headerKey('content-type');
const GRPC_ACCEPT_ENCODING = headerKey('grpc-accept-encoding');
const GRPC_ENCODING = headerKey('grpc-encoding');
const GRPC_MESSAGE = headerKey('grpc-message');
const GRPC_STATUS = headerKey('grpc-status');

const COMPRESSED = 1;
const END_STREAM = 2;

export class ConnectBridgeFilter implements HttpFilter {
  readonly #stream: StreamControl;
  /** Undefined: the stream is not bridged. */
  #request: ConnectRequest | undefined;
  #isFramed = false;
  /** The head of a unary response while it is held, with the message that follows. */
  #head: HeaderBlock | undefined;
  /** Bytes of the frame's header that still have to be dropped from the response. */
  #headerLeft = FRAME_HEADER_BYTES;
  /** The response is gRPC. */
  #isBridging = false;

  constructor(stream: StreamControl) {
    this.#stream = stream;
  }

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    this.#request = toGrpcRequest(headers);
    if (this.#request?.isStreaming === false && endStream) {
      const { message = Buffer.alloc(0) } = this.#request;
      this.#stream.addRequestBytes(this.#frameHeader(message.length));
      this.#stream.addRequestBytes(message);
    }
    return HeadersStatus.Continue;
  }

  decodeData(_offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#request?.isStreaming !== false || this.#isFramed) return DataStatus.Continue;
    if (!endStream) return DataStatus.StopAndBuffer;
    this.#stream.passRequestBytes(this.#frameHeader(this.#stream.heldRequestBytes() + length));
    return DataStatus.Continue;
  }

  decodeTrailers(): HeadersStatus {
    if (this.#request?.isStreaming === false && !this.#isFramed)
      this.#stream.passRequestBytes(this.#frameHeader(this.#stream.heldRequestBytes()));
    return HeadersStatus.Continue;
  }

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    // Others than gRPC responses, also Baton's own, are errors of HTTP, which Connect clients understand.
    if (this.#request === undefined || !isGrpcRequest(headers)) return HeadersStatus.Continue;
    const { isStreaming } = this.#request;
    this.#isBridging = true;
    const type = headers.get(CONTENT_TYPE)!.slice('application/grpc+'.length) || 'proto';
    headers.set(CONTENT_TYPE, `application/${isStreaming ? 'connect+' : ''}${type}`);
    headers.remove(CONTENT_LENGTH);
    move(headers, GRPC_ENCODING, isStreaming ? CONNECT_CONTENT_ENCODING : CONTENT_ENCODING);
    move(headers, GRPC_ACCEPT_ENCODING, isStreaming ? CONNECT_ACCEPT_ENCODING : ACCEPT_ENCODING);
    if (!isStreaming) this.#head = headers;
    if (!endStream) return isStreaming ? HeadersStatus.Continue : HeadersStatus.StopIteration;
    if (isStreaming) this.#stream.addResponseBytes(endFrame(headers, false));
    else this.#answer(headers, headers);
    headers.remove(GRPC_STATUS);
    headers.remove(GRPC_MESSAGE);
    return HeadersStatus.Continue;
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    const head = this.#head;
    if (!this.#isBridging || head === undefined) return DataStatus.Continue;
    const dropped = Math.min(this.#headerLeft, length);
    this.#headerLeft -= dropped;
    this.#stream.addResponseBytes(head.memory.bytes.subarray(offset + dropped, offset + length));
    // Without trailers there is no status.
    if (endStream) this.#stream.continueEncoding();
    return DataStatus.StopNoBuffer;
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    if (!this.#isBridging) return HeadersStatus.Continue;
    if (this.#head === undefined) this.#stream.passResponseBytes(endFrame(trailers, true));
    else this.#answer(this.#head, trailers);
    for (let index = 0; index < trailers.size; index++) trailers.removeAt(index);
    return HeadersStatus.Continue;
  }

  /** Completes a unary response: `fields` are its trailers, or the head that ends it. */
  #answer(head: HeaderBlock, fields: HeaderBlock): void {
    const failure = connectError(fields);
    if (fields !== head) {
      for (const [name, values] of otherFields(fields))
        for (const value of values) head.add(headerKey(`trailer-${name}`), value);
    }
    if (failure === undefined) return;
    head.setStatus(failure.status);
    head.set(CONTENT_TYPE, 'application/json');
    head.remove(CONTENT_ENCODING);
    this.#stream.dropResponseBytes();
    this.#stream.addResponseBytes(Buffer.from(JSON.stringify(failure.error)));
  }

  /** The header of the request's only frame. */
  #frameHeader(length: number): Uint8Array {
    this.#isFramed = true;
    const header = frameHeader(length);
    if (this.#request!.isCompressed) header[0] = COMPRESSED;
    return header;
  }
}

/** Returns the last frame of a streaming response. `hasMetadata`: the fields are trailers, and not the head. */
function endFrame(fields: HeaderBlock, hasMetadata: boolean): Uint8Array {
  const metadata = hasMetadata ? otherFields(fields) : new Map<string, string[]>();
  const error = connectError(fields)?.error;
  const text = JSON.stringify({
    metadata: metadata.size === 0 ? undefined : Object.fromEntries(metadata),
    error,
  });
  const content = Buffer.from(text);
  const header = frameHeader(content.length);
  header[0] = END_STREAM;
  return Buffer.concat([header, content]);
}
