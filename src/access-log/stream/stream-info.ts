// What is known about one request, or one TCP connection, for logs and for values made from formats.
//
// One object is reused stream after stream: whoever serves the stream calls reset() and fills the fields as things happen.

import type { HeaderView } from './header-view.js';
import { ResponseFlag } from './response-flags.js';

/** The text forms are in PROTOCOL_NAMES. */
export const enum Protocol {
  None = 0,
  Http10 = 1,
  Http11 = 2,
  Http2 = 3,
  Http3 = 4,
}

/** By Protocol; empty for None. */
export const PROTOCOL_NAMES = ['', 'HTTP/1.0', 'HTTP/1.1', 'HTTP/2', 'HTTP/3'] as const;

/** A time that has not come. */
export const UNSET = -1;

/** The two ends of a client's connection as text with port; made when somebody asks. */
export interface DownstreamEnds {
  /** The client, which a proxy may have named. */
  readonly remoteText: string;
  /** The socket's own peer. */
  readonly directRemoteText: string;
  readonly localText: string;
}

/** What logs call a cluster. */
export interface ClusterNames {
  readonly name: string;
  /** alt_stat_name, or the same. */
  readonly observabilityName: string;
}

/** Texts are empty, times UNSET and heads undefined until they are known. Times are milliseconds. */
export class StreamInfo {
  /** When the first byte of the head arrived, or the connection was accepted: wall clock and monotonic clock. */
  startRealtimeMs = 0;
  startMonotonicMs = 0;
  /** From the start to the last byte out: set at the end. */
  durationMs = 0;

  protocol: Protocol = Protocol.None;
  upstreamProtocol: Protocol = Protocol.None;
  /** `http` or `https`: that of the URL, else the one by which the client came to the first proxy; empty for TCP. */
  scheme = '';
  /** 0 when no response began. */
  responseCode = 0;
  responseCodeDetails = '';
  /** Bits of ResponseFlag. */
  responseFlags: number = ResponseFlag.None;
  /** Of the body in HTTP, of the connection in TCP. */
  bytesReceived = 0;
  bytesSent = 0;

  /** Somebody asks how this server is: statistics of traffic leave the request out. */
  isHealthCheck = false;

  requestHeaders: HeaderView | undefined = undefined;
  responseHeaders: HeaderView | undefined = undefined;
  responseTrailers: HeaderView | undefined = undefined;

  routeName = '';
  virtualHostName = '';
  /** The cluster that was chosen. */
  upstreamCluster: ClusterNames | undefined = undefined;
  /** Of the last try: address of the host that was chosen, as `127.0.0.1:80`, `[::1]:80` or a path. */
  upstreamHost = '';
  upstreamLocalAddress = '';
  upstreamTransportFailureReason = '';
  /** How often the request was tried upstream. */
  attemptCount = 0;

  downstream: DownstreamEnds | undefined = undefined;
  /** As inferred from x-forwarded-for; empty: that of the connection. */
  inferredRemoteAddress = '';
  connectionId = 0;
  connectionTerminationDetails = '';
  requestedServerName = '';

  /** Monotonic times. Downstream: last byte of the request in, first and last byte of the response out. */
  lastDownstreamRxMs = UNSET;
  firstDownstreamTxMs = UNSET;
  lastDownstreamTxMs = UNSET;
  /** Upstream, in the last try: first and last byte of the request out, first and last byte of the response in. */
  firstUpstreamTxMs = UNSET;
  lastUpstreamTxMs = UNSET;
  firstUpstreamRxMs = UNSET;
  lastUpstreamRxMs = UNSET;

  /** Of the client, as inferred. */
  get downstreamRemoteAddress(): string {
    return this.inferredRemoteAddress !== '' ? this.inferredRemoteAddress : (this.downstream?.remoteText ?? '');
  }

  /** Of the peer itself. */
  get downstreamDirectRemoteAddress(): string {
    return this.downstream?.directRemoteText ?? '';
  }

  get downstreamLocalAddress(): string {
    return this.downstream?.localText ?? '';
  }

  /** The request is tried again: what is known of the try before is not of the one that counts. */
  forgetTry(): void {
    this.upstreamProtocol = Protocol.None;
    this.upstreamHost = '';
    this.upstreamLocalAddress = '';
    this.upstreamTransportFailureReason = '';
    this.firstUpstreamTxMs = UNSET;
    this.lastUpstreamTxMs = UNSET;
    this.firstUpstreamRxMs = UNSET;
    this.lastUpstreamRxMs = UNSET;
  }

  /** Makes the object ready for the next stream that begins now. */
  reset(startRealtimeMs: number, startMonotonicMs: number): void {
    this.startRealtimeMs = startRealtimeMs;
    this.startMonotonicMs = startMonotonicMs;
    this.durationMs = 0;
    this.protocol = Protocol.None;
    this.upstreamProtocol = Protocol.None;
    this.scheme = '';
    this.responseCode = 0;
    this.responseCodeDetails = '';
    this.responseFlags = ResponseFlag.None;
    this.bytesReceived = 0;
    this.bytesSent = 0;
    this.isHealthCheck = false;
    this.requestHeaders = undefined;
    this.responseHeaders = undefined;
    this.responseTrailers = undefined;
    this.routeName = '';
    this.virtualHostName = '';
    this.upstreamCluster = undefined;
    this.upstreamHost = '';
    this.upstreamLocalAddress = '';
    this.upstreamTransportFailureReason = '';
    this.attemptCount = 0;
    this.downstream = undefined;
    this.inferredRemoteAddress = '';
    this.connectionId = 0;
    this.connectionTerminationDetails = '';
    this.requestedServerName = '';
    this.lastDownstreamRxMs = UNSET;
    this.firstDownstreamTxMs = UNSET;
    this.lastDownstreamTxMs = UNSET;
    this.firstUpstreamTxMs = UNSET;
    this.lastUpstreamTxMs = UNSET;
    this.firstUpstreamRxMs = UNSET;
    this.lastUpstreamRxMs = UNSET;
  }
}
