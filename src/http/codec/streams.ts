// The interface between a codec and its streams. Downstream, requests arrive through RequestDecoder and are answered through
// ResponseEncoder; upstream the pair is RequestEncoder and ResponseDecoder. The interface does not depend on the HTTP version.
//
// Codecs do no I/O: bytes enter through receive() and leave through ByteSink. Byte ranges passed to a decoder are valid until the call
// returns. So are headers, unless HeaderBlock.retain() is called.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import type { StreamBytes } from '../../access-log/stream/stream-bytes.js';
import type { Protocol } from '../../access-log/stream/stream-info.js';
import type { CounterSlot } from '../../stats/layout.js';
import type { HeaderBlock } from '../headers/header-block.js';

/** The connection as its codec uses it: sends bytes and controls reading. */
export interface ByteSink {
  /** Queues memory[offset, offset + length) for the peer. */
  send(offset: number, length: number): void;
  /** Stops reading from the peer: the codec's stream cannot accept more. */
  pause(): void;
  resume(): void;
  /** Sent bytes of earlier turns that the peer has not read yet. */
  readonly pendingBytes: number;
  /** Requests a call of the codec's takeTurn() in a later turn, after other connections had theirs. */
  requestTurn(): void;
}

export const enum ResetReason {
  /** The peer closed or reset the connection before the message ended. */
  ConnectionTermination = 1,
  /** The peer violated the protocol; a host also when it ends the connection within a response. */
  ProtocolError = 2,
  /** This side abandoned the stream. */
  LocalReset = 3,
  /** The peer reset only this stream (HTTP/2). */
  RemoteReset = 4,
  /** The peer reset the stream unprocessed: the request may be retried (RFC 9113, section 8.7). */
  RefusedStream = 5,
  /** An exception was thrown while handling the stream. */
  InternalError = 6,
  /** This side was asked to end: the same as LocalReset, except that a tunnel is closed gracefully. */
  LocalClose = 7,
  /** The peer's own connection of a tunnel failed (CONNECT in HTTP/2). */
  ConnectError = 8,
}

/** Why a message is invalid: the status to answer with, and a fixed text for logs (response code details). */
export interface CodecError {
  /** 400, 408, 426, 431 … for requests; for responses only a marker that the message is invalid. */
  readonly status: number;
  /** As in Envoy's response code details, for example `http1.content_length_and_chunked`. */
  readonly detail: string;
  /** Body of the answer. */
  readonly body?: string;
  /** For access logs; 0 if undefined. */
  readonly flags?: ResponseFlag;
  /** The request is refused for what its head says, which is read to the end. As in Envoy, one without a body is complete. */
  readonly isHeadRead?: boolean;
  /** The server is overloaded: no fault of the client is counted, whatever the flags say. */
  readonly isOverload?: boolean;
  /** HttpStats.at index of a counter of this error. */
  readonly counter?: CounterSlot;
}

/** The arena has no room for the bytes of a message that must be kept. */
export const NO_MEMORY: CodecError = { status: 503, detail: 'overload', flags: ResponseFlag.OverloadManager };

/**
 * Receives one request as it is decoded. onHeaders(…, true), onData(…, true) or onTrailers() completes the request; after onInvalid() no
 * more of it follows.
 */
export interface RequestDecoder {
  onHeaders(headers: HeaderBlock, endStream: boolean): void;
  onData(offset: number, length: number, endStream: boolean): void;
  onTrailers(trailers: HeaderBlock): void;
  /**
   * Called for invalid input before the response has begun. The stream sends the answer, and the codec closes the connection after it.
   * `head` has the readable part of a head that is invalid itself, valid until this returns; it is undefined if nothing is readable, or if
   * onHeaders() was called.
   */
  onInvalid(error: CodecError, head: HeaderBlock | undefined): void;
  /** Called when the stream ends before it is complete: the client disconnected, or sent invalid input (`error`) after the response began. */
  onReset(reason: ResetReason, error: CodecError | undefined): void;
  /** Called when the response direction rises above its high watermark, and when it falls below its low one. */
  onWriteBlocked(): void;
  onWriteDrained(): void;
}

/** Sends the response to one request. The codec does the framing (content-length, chunked, no body). The caller ends it exactly once. */
export interface ResponseEncoder {
  /** The protocol version of the request. */
  readonly protocol: Protocol;
  /** Counts the bytes of the request and of its response. Undefined: the codec does not count. Valid until the stream ends. */
  readonly bytes?: StreamBytes;
  /**
   * Delays the end of the response, so that the caller can read `bytes` after the last byte was sent: after headers(), data() or
   * trailers() ended it, releaseEnd() completes the exchange. Present if `bytes` is.
   */
  holdEnd?(): void;
  releaseEnd?(): void;
  /** Sends 100 Continue to a client that waits before it sends its body (Expect: 100-continue). */
  sendContinue(): void;
  /** Sends a 1xx head; the final response follows. */
  informational(headers: HeaderBlock): void;
  headers(headers: HeaderBlock, endStream: boolean): void;
  data(offset: number, length: number, endStream: boolean): void;
  trailers(trailers: HeaderBlock): void;
  /** Ends the response direction of a tunnel while the client still sends. data(…, true) without bytes follows when that has ended too. */
  halfClose(): void;
  /** Accepts no further request on this connection. Called before headers(), it is announced in them where the protocol can. */
  endConnection(): void;
  /** Abandons the stream. Once headers were sent, HTTP/1 can only close the connection. */
  reset(reason: ResetReason): void;
  /** Pauses and resumes the delivery of this stream's request body. */
  pauseReading(): void;
  resumeReading(): void;
}

/** Sends one request upstream. The caller ends it exactly once. */
export interface RequestEncoder {
  /** The protocol version of the upstream connection. */
  readonly protocol: Protocol;
  /** As in ResponseEncoder. Valid until the caller begins another stream. */
  readonly bytes?: StreamBytes;
  headers(headers: HeaderBlock, endStream: boolean): void;
  data(offset: number, length: number, endStream: boolean): void;
  trailers(trailers: HeaderBlock): void;
  reset(reason: ResetReason): void;
  pauseReading(): void;
  resumeReading(): void;
  /** Continues the request when its response has ended. Absent where the protocol cannot. */
  keepOpen?(): void;
}

/** Receives one response as it is decoded. */
export interface ResponseDecoder {
  onInformational(headers: HeaderBlock): void;
  onHeaders(headers: HeaderBlock, endStream: boolean): void;
  onData(offset: number, length: number, endStream: boolean): void;
  onTrailers(trailers: HeaderBlock): void;
  /**
   * Called when the stream ends before both messages are complete. After a complete response: the rest of the request is not needed. The
   * encoder may serve another request from then on.
   */
  onReset(reason: ResetReason, error: CodecError | undefined): void;
  onWriteBlocked(): void;
  onWriteDrained(): void;
}
