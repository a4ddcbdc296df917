// What stands between a codec and the streams above it: requests come in through RequestDecoder and are answered through
// ResponseEncoder; upstream it is RequestEncoder and ResponseDecoder. HTTP/1.1 and HTTP/2 codecs look the same from here.
//
// Codecs do no I/O: bytes come in by receive(), bytes go out through ByteSink. Byte ranges handed to a decoder are valid
// until the call returns; headers until then too, unless HeaderBlock.retain() is called.

import type { Protocol } from '../../access-log/stream/stream-info.js';
import type { HeaderBlock } from '../headers/header-block.js';

/** Where a codec's bytes go, and how it asks for more or fewer: one connection. */
export interface ByteSink {
  /** Queues memory[offset, offset + length) for the peer. */
  send(offset: number, length: number): void;
  /** Receive nothing more for now: the codec's stream cannot take it. */
  pause(): void;
  resume(): void;
  /** Has the codec go on with what it holds in another turn, behind what others have received by then. */
  goOnLater(): void;
}

export const enum ResetReason {
  /** The peer closed or reset the connection before the message ended. */
  ConnectionTermination = 1,
  /** The peer broke the protocol. */
  ProtocolError = 2,
  /** This side gave the stream up. */
  LocalReset = 3,
  /** The peer reset the stream alone (HTTP/2). */
  RemoteReset = 4,
  /** The same, and says that it has done nothing for it: the request may be sent again (RFC 9113, section 8.7). */
  RefusedStream = 5,
  /** Something threw here on behalf of the stream. */
  InternalError = 6,
}

/** What is wrong with a message: the answer it deserves and a fixed text for logs (response code details). */
export interface CodecError {
  /** 400, 408, 426, 431 … for requests; for responses it only tells that the message is invalid. */
  readonly status: number;
  /** As in Envoy's response code details, for example `http1.content_length_and_chunked`. */
  readonly detail: string;
  /** Text of the answer, one character a byte: plain, unless `fields` say what it is. */
  readonly body?: string;
  /** Lines that its head has beside those of its framing and its connection. */
  readonly fields?: string;
}

/** The arena has no room for what has to be kept of a message. */
export const NO_MEMORY: CodecError = { status: 503, detail: 'overload' };

/** Whether what has come is no HTTP; other requests can be read, and are refused. */
export function isUnreadable(error: CodecError): boolean {
  return error.detail.startsWith('http1.');
}

/** One request as it is decoded. After onHeaders(…, true), onData(…, true) or onTrailers() the request is complete. */
export interface RequestDecoder {
  onHeaders(headers: HeaderBlock, endStream: boolean): void;
  onData(offset: number, length: number, endStream: boolean): void;
  onTrailers(trailers: HeaderBlock): void;
  /**
   * The stream ended before it was complete: the peer left, or sent something invalid (error says what). Returns what the peer is told
   * of that, if it has no answer yet: `error`, or another answer in its place.
   */
  onReset(reason: ResetReason, error: CodecError | undefined): CodecError | undefined;
  /** The response direction holds more than its high watermark, and again less than its low one. */
  onWriteBlocked(): void;
  onWriteDrained(): void;
}

/** The answer to one request. Framing (content-length, chunked, no body) is the codec's; end exactly once. */
export interface ResponseEncoder {
  /** What the request was sent in. */
  readonly protocol: Protocol;
  /** Tells a client that waits before it sends its body (Expect: 100-continue) to go on. */
  sendContinue(): void;
  /** A 1xx head; the final answer follows. */
  informational(headers: HeaderBlock): void;
  headers(headers: HeaderBlock, endStream: boolean): void;
  data(offset: number, length: number, endStream: boolean): void;
  trailers(trailers: HeaderBlock): void;
  /** No request is to follow on this connection: said before the headers, it is told with them where the protocol can. */
  endConnection(): void;
  /** Gives the stream up: after headers have gone out HTTP/1 can only close the connection. */
  reset(reason: ResetReason): void;
  /** Stops and restarts the delivery of this stream's request body. */
  pauseReading(): void;
  resumeReading(): void;
}

/** One request as it is sent upstream. End exactly once. */
export interface RequestEncoder {
  /** What the host is spoken to in. */
  readonly protocol: Protocol;
  headers(headers: HeaderBlock, endStream: boolean): void;
  data(offset: number, length: number, endStream: boolean): void;
  trailers(trailers: HeaderBlock): void;
  reset(reason: ResetReason): void;
  pauseReading(): void;
  resumeReading(): void;
}

/** One response as it is decoded. */
export interface ResponseDecoder {
  onInformational(headers: HeaderBlock): void;
  onHeaders(headers: HeaderBlock, endStream: boolean): void;
  onData(offset: number, length: number, endStream: boolean): void;
  onTrailers(trailers: HeaderBlock): void;
  onReset(reason: ResetReason, error: CodecError | undefined): void;
  onWriteBlocked(): void;
  onWriteDrained(): void;
}
