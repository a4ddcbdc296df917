// The interface between a codec and the owner of its connection, for any protocol. Received bytes and the peer's FIN go in; streams and the
// end of the connection come out. streams.ts has the interface between a codec and its streams.

import type { StepPool } from '../step-pool.js';
import type {
  ByteSink,
  CodecError,
  RequestDecoder,
  RequestEncoder,
  ResponseDecoder,
  ResponseEncoder,
} from './streams.js';

/** How a connection calls its codec, on the client's and the server's end. */
export interface ConnectionCodec {
  /** Takes received bytes memory[offset, offset + length), which are valid until the call returns. Not reentrant. */
  receive(offset: number, length: number): void;
  /** Called when the peer has half-closed (FIN). */
  end(): void;
  /** Called when the send queue rises above its high watermark, and when it falls below the low one. */
  blocked(): void;
  drained(): void;
  /** Continues after ByteSink.requestTurn(). */
  takeTurn(): void;
  /** Received bytes that are buffered: an incomplete head, or input that cannot be handled yet. */
  readonly bufferedBytes: number;
  /** Releases everything after the connection has closed. Unfinished streams get onReset(); no other callback follows. */
  destroy(): void;
}

/** How far the last request and its response had come when their connection ends. */
export const enum ExchangeEnd {
  /** There is no request, or its response is complete and the client may still be sending. */
  None = 0,
  /** Both are complete: the client has nothing left to send. */
  Complete = 1,
  /** The response is incomplete. */
  Broken = 2,
  /** Both are complete, and the client announced this request as its last (RFC 9112, section 9.6). */
  Last = 3,
}

/** The callbacks of a server codec to the owner of its connection. */
export interface ServerCodecEvents {
  /** Called when a request head is complete or invalid. Returns the decoder, whose onHeaders() or onInvalid() follows. */
  newStream(encoder: ResponseEncoder): RequestDecoder;
  /** Called when the last stream has ended and the connection is ready for the next. That stream's headers are still readable. */
  onIdle(): void;
  /**
   * Called when the connection must close: after the queued bytes are sent, or with `abort` by RST, which the peer cannot mistake for the
   * end of a message. Nothing more is read or sent.
   */
  onClose(abort: boolean, exchange: ExchangeEnd): void;
  /**
   * Called when the arena has no room for an incoming head, of which `bytes` have been received. Returns true when the owner will call
   * resumeHead(); otherwise the request is refused.
   */
  onNoRoom?(bytes: number): boolean;
  /** Called when the client has violated the protocol outside of streams. onClose() follows. */
  onProtocolError?(error: CodecError): void;
  /** Called when a tunnel's sending direction has ended, and the client may still send: the owner half-closes the socket. */
  onHalfClose?(): void;
}

/** The server's end of a connection. */
export interface ServerCodec extends ConnectionCodec {
  /** Attaches this codec to a connection that begins with a request. The codec must be new, or at rest since an earlier event. */
  serve(sink: ByteSink, events: ServerCodecEvents): void;
  /**
   * No state of the last connection is left. Another connection may use the codec from the next event on; until then callers may still be
   * on the stack.
   */
  readonly isAtRest: boolean;
  /** The connection is between two requests and the client has not half-closed: everything buffered belongs to the next request. */
  readonly isBetweenRequests: boolean;
  /** No request begins until the client reads more of the responses that it has been sent. */
  readonly awaitsClient: boolean;
  /** The buffered bytes begin no request: they are an empty line after the last message, or frames other than a header section. */
  readonly holdsNoRequest: boolean;
  /** Several requests may be active at once. The connection ends by announceClose() and refuseStreams(), not with a response. */
  readonly isMultiplexed: boolean;
  /** Announces that no request will be accepted soon (GOAWAY), in a protocol that can. */
  announceClose(): void;
  /** Does what is due at `now` (monotonic). Returns the milliseconds after which to call again, at the latest. */
  check(now: number): number;
  /** Accepts no request from now on, and tells the client which ones were accepted. */
  refuseStreams(): void;
  /** Bytes of the arena that the buffered bytes occupy. */
  readonly retainedBytes: number;
  /** Returns a copy of the buffered bytes, in order. */
  copyBuffered(): Uint8Array;
  /** Prevents new requests until startRequests(). */
  holdRequests(): void;
  startRequests(): void;
  /** A request head is waiting until the arena has room. */
  readonly isAwaitingRoom: boolean;
  /** Resumes the waiting head, which may have to wait again. Returns false when there is still no room for the bytes received so far. */
  resumeHead(): boolean;
  /** Refuses the request whose head is waiting. */
  refuseHead(): void;
  /** Refuses the next request, whose head is incomplete, as if it were invalid. Nothing more is read. Valid without an active stream. */
  refuseNext(error: CodecError): void;
  /** The client has disconnected: an incomplete head becomes a stream that is reset. Returns whether there was one. */
  abandonNext(): boolean;
}

/** A downstream protocol: its codecs, and the HttpStats.at indexes of its counters. */
export interface ServerProtocol {
  readonly connectionsTotal: number;
  readonly connectionsActive: number;
  readonly requestsTotal: number;
  readonly codecs: StepPool<ServerCodec>;
}

/** How a stream to a host ended. */
export const enum StreamEnd {
  /** Request and response are complete. */
  Complete = 0,
  /** It was abandoned before the response was complete. */
  Abandoned = 1,
  /** A tunnel was abandoned before the client's direction had ended: only a reset shows the host that bytes are missing. */
  CutOff = 2,
  /** A tunnel was ended in order, while either side might still send: the host gets what was sent to it. */
  Closed = 3,
  /** Both directions of a tunnel are complete: the client has ended its own first, or the host has. */
  EndedByClient = 4,
  EndedByHost = 5,
}

/** The callbacks of a client codec to the owner of its connection. */
export interface ClientCodecEvents {
  /** Called when a stream has ended. If `reusable`, newStream() may be called at once; otherwise the connection must be closed. */
  onStreamComplete(reusable: boolean, end: StreamEnd): void;
  /** Called when the host announces that it closes the connection after the streams in progress. */
  onCloseNotice?(): void;
  /** Called when the host has set how many streams may be open at once. */
  onStreamLimit?(streams: number): void;
  /** Called when the host has sent bytes after a response, which remains valid. */
  onSurplus?(): void;
  /** Called when the host violated the protocol. Streams have already been reset; the connection must be closed. */
  onProtocolError(error: CodecError): void;
  /**
   * Called when the host has ended the connection and everything before that was handled: the connection must be closed. `isCutOff`: a
   * response is incomplete by its own framing.
   */
  onEnded(isCutOff: boolean): void;
  /** Called when a tunnel's sending direction has ended: the owner may half-close the socket. */
  onHalfClose?(): void;
  /** Called when check() must be called soon, in a later turn. */
  onCheckDue?(): void;
}

/** The client's end of a connection. */
export interface ClientCodec extends ConnectionCodec {
  /** How many more requests can begin now. */
  readonly freeStreams: number;
  /** Begins a request. Requires freeStreams > 0. */
  newStream(decoder: ResponseDecoder): RequestEncoder;
  /** Called when the host has reset the connection. Streams are reset, and onEnded() follows. */
  interrupted(): void;
  /** See ServerCodec.check(). */
  check(now: number): number;
  /** A request on a connection on which nothing was received for this long comes with requestPing(); 0: never. */
  readonly idlePingMs: number;
  /**
   * Makes the next check() ask the host whether it is still there. Returns whether check() is due: a ping may end the connection, which must
   * not happen while a request begins.
   */
  requestPing(): boolean;
}

/** The protocol of a pool's connections: one, or the one that each connection negotiates. */
export type PoolProtocol = ClientProtocol | NegotiatedProtocol;

export interface NegotiatedProtocol {
  /** How many requests a connection is expected to take at once before its protocol is known. */
  readonly streamsPerConnection: number;
  /** Returns the protocol of a connection. `name`: what ALPN has selected, '' without. */
  negotiated(name: string): ClientProtocol;
}

/** An upstream protocol: its codecs, and the ClusterStats.at index of its connection counter. */
export interface ClientProtocol {
  readonly connectionsTotal: number;
  /** How many requests a new connection is expected to take at once. */
  readonly streamsPerConnection: number;
  /** Creates the codec of a new connection. `expectedStreams`: the limit of streams until the host sets it. */
  codec(sink: ByteSink, events: ClientCodecEvents, expectedStreams: number): ClientCodec;
}
