// What stands between a codec and the owner of its connection, whatever the protocol: bytes and the end of the peer's direction go in,
// streams and the end of the connection come out. streams.ts has what a stream and its codec say to each other.

import type { Protocol } from '../../access-log/stream/stream-info.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { StepPool } from '../step-pool.js';
import type {
  ByteSink,
  CodecError,
  RequestDecoder,
  RequestEncoder,
  ResponseDecoder,
  ResponseEncoder,
} from './streams.js';

/** What the codecs of both ends are told by the connection that they belong to, and asked. */
export interface ConnectionCodec {
  /** Received bytes: memory[offset, offset + length), valid until the call returns. Never called by what it calls. */
  receive(offset: number, length: number): void;
  /** The peer has ended its direction (FIN). */
  end(): void;
  /** More than the high watermark waits to be sent, and again less than the low one. */
  blocked(): void;
  drained(): void;
  /** For ByteSink.goOnLater(). */
  takeTurn(): void;
  /** Bytes that were received and wait: an unfinished head, or what cannot be handled yet. */
  readonly bufferedBytes: number;
  /** The connection is gone: releases everything. Streams that are not over learn it from onReset(); nothing else follows. */
  destroy(): void;
}

/** What of a request and its answer there is at the end of their connection. */
export const enum ExchangeEnd {
  /** There is none, or its answer is complete and the client may still be sending. */
  None = 0,
  /** Both are complete: the client has nothing to send. */
  Whole = 1,
  /** The request has got no complete answer. */
  Broken = 2,
  /** Both are complete, and the client has said that it sends no more (RFC 9112, section 9.6). */
  Last = 3,
}

/** What the owner of a connection from a client is told by its codec. */
export interface ServerCodecEvents {
  /** A request head is complete; its decoder's onHeaders() follows. */
  newStream(encoder: ResponseEncoder): RequestDecoder;
  /**
   * A request that cannot be read, and there is no stream for it: the owner answers with answerInvalid() and closes. The
   * codec reads nothing more. `head` has what could be read of the request, until this returns.
   */
  onInvalid(error: CodecError, head: HeaderBlock | undefined): void;
  /** No stream is left and the connection waits for the next. The headers of the last one can still be read. */
  onIdle(): void;
  /**
   * The connection has to be closed: behind what was sent, or with `abort` in a way that the peer cannot take for the end
   * of a message (RST). Nothing more is read or sent.
   */
  onClose(abort: boolean, exchange: ExchangeEnd): void;
  /**
   * The arena has no room for the head that comes, of which there are so many bytes. Returns true when the owner will call
   * takeRoom(); otherwise the request is refused.
   */
  onNoRoom?(bytes: number): boolean;
}

/** The server's end of a connection. */
export interface ServerCodec extends ConnectionCodec {
  /** From now on it is the codec of this connection, which begins with a request. It is new, or at rest since an earlier event. */
  serve(sink: ByteSink, events: ServerCodecEvents): void;
  /** Nothing of what it has served is left: it can serve another connection, from the next event on because callers may still be inside. */
  readonly isAtRest: boolean;
  /** Between two requests, neither of which the client has given up: whatever is buffered belongs to the next. */
  readonly isBetweenRequests: boolean;
  /** No request begins before the client takes more of the answers that it has. */
  readonly awaitsClient: boolean;
  /** All that waits is an empty line behind the last message, with which nothing begins. */
  readonly holdsEmptyLine: boolean;
  /** Bytes of the arena that they take. */
  readonly retainedBytes: number;
  /** A copy of the bytes that wait, in order. */
  copyBuffered(): Uint8Array;
  /** No request begins until startRequests(). */
  holdRequests(): void;
  startRequests(): void;
  /** The head of a request waits until the arena has room. */
  readonly isAwaitingRoom: boolean;
  /** Goes on with a head that waits, which may then wait again. Returns false when there is no room for what has come of it. */
  takeRoom(): boolean;
  /** Refuses the request whose head waits. */
  giveUpRoom(): void;
  /** What the request that could not be read, or has not come, was to be in. */
  readonly protocol: Protocol;
  /** Answers what could not be read. Does nothing when an answer has begun. The owner closes afterwards. */
  answerInvalid(error: CodecError, isHeadRequest: boolean): void;
}

/** A protocol that clients speak: how its connections and requests are counted (HttpStats.at), and its codecs. */
export interface ServerProtocol {
  readonly connectionsTotal: number;
  readonly connectionsActive: number;
  readonly requestsTotal: number;
  readonly codecs: StepPool<ServerCodec>;
}

/** How a stream to a host is over. */
export const enum StreamEnd {
  /** Request and response are complete, or the rest of the request is of no use. */
  Complete = 0,
  /** It was given up before the response was complete. */
  GivenUp = 1,
  /** So was a tunnel in which more might have been sent: only a broken connection tells the server that it has not got all. */
  CutOff = 2,
}

/** What the owner of a connection to a host is told by its codec. */
export interface ClientCodecEvents {
  /** A stream is over. Without `reusable` the connection has to be closed; with it, newStream() may be called at once. */
  onStreamComplete(reusable: boolean, end: StreamEnd): void;
  /** A response says that the server closes the connection behind it. */
  onCloseNotice?(): void;
  /** The server broke the protocol. Streams were reset before; the connection has to be closed. */
  onProtocolError(error: CodecError): void;
  /** The server has ended its direction, and everything before that was handled: the connection has to be closed. */
  onEnded(): void;
  /** A tunnel's sending direction has ended: the owner may end it on the socket too. */
  onHalfClose?(): void;
}

/** The client's end of a connection. */
export interface ClientCodec extends ConnectionCodec {
  /** Requests that can begin now, beside those that are under way. */
  readonly freeStreams: number;
  /** Begins a request; there must be room for one. */
  newStream(decoder: ResponseDecoder): RequestEncoder;
}

/** A protocol that hosts speak: how its connections are counted (ClusterStats.at), and its codecs. */
export interface ClientProtocol {
  readonly connectionsTotal: number;
  /** For a new connection. */
  codec(sink: ByteSink, events: ClientCodecEvents): ClientCodec;
}
