// The properties of one request or TCP connection, for logs and for values of formats.
//
// An object is reused for many streams: its owner calls reset() and sets the fields as they become known.

import type { ConnectionSecurity } from '../../io/tls/connection-security.js';
import type { DetectedProtocols } from '../../io/tls/detected-protocols.js';
import type { HeaderView } from './header-view.js';
import { ResponseFlag } from './response-flags.js';

/** See PROTOCOL_NAMES for the texts. */
export const enum Protocol {
  None = 0,
  Http10 = 1,
  Http11 = 2,
  Http2 = 3,
  Http3 = 4,
}

/** Texts by Protocol; empty for None. */
export const PROTOCOL_NAMES = ['', 'HTTP/1.0', 'HTTP/1.1', 'HTTP/2', 'HTTP/3'] as const;

/** The value of a time that is not set yet. */
export const UNSET = -1;

/** The properties of a client's connection. Addresses are text with port, created on demand. */
export interface DownstreamProperties {
  /** The client, as reported by a preceding proxy if there is one. */
  readonly remoteText: string;
  /** The peer of the socket. */
  readonly directRemoteText: string;
  readonly localText: string;
  /** The socket's own address. */
  readonly directLocalText: string;
  /** What TLS has established; undefined without TLS, and before the handshake has succeeded. */
  readonly security: ConnectionSecurity | undefined;
  /** What listener filters have detected; undefined if that is nothing. */
  readonly detected: DetectedProtocols | undefined;
}

/** The names of a cluster in logs. */
export interface ClusterNames {
  readonly name: string;
  /** alt_stat_name, or else `name`. */
  readonly observabilityName: string;
}

/** Until they are known, texts are empty, times UNSET and heads undefined. Times are in milliseconds. */
export class StreamInfo {
  /** When the first byte of the head was received, or the connection was accepted: wall clock and CLOCK_MONOTONIC. */
  startRealtimeMs = 0;
  startMonotonicMs = 0;
  /** From the start to the last sent byte. Set at the end. */
  durationMs = 0;

  protocol: Protocol = Protocol.None;
  upstreamProtocol: Protocol = Protocol.None;
  /** `http` or `https`: from the URL, or else that of the client's connection to the first proxy; empty for TCP. */
  scheme = '';
  /** 0 if no response has begun. */
  responseCode = 0;
  responseCodeDetails = '';
  /** Bits of ResponseFlag. */
  responseFlags: number = ResponseFlag.None;
  /** HTTP: bytes of the body; TCP: bytes of the connection. */
  bytesReceived = 0;
  bytesSent = 0;

  /** The request is a health check of this server: traffic stats exclude it. */
  isHealthCheck = false;

  requestHeaders: HeaderView | undefined = undefined;
  responseHeaders: HeaderView | undefined = undefined;
  responseTrailers: HeaderView | undefined = undefined;

  routeName = '';
  virtualHostName = '';
  /** The selected cluster. */
  upstreamCluster: ClusterNames | undefined = undefined;
  /** The host of the last try, as `127.0.0.1:80`, `[::1]:80` or a path. */
  upstreamHost = '';
  upstreamLocalAddress = '';
  /** upstreamHost, once it is connected. */
  upstreamRemoteAddress = '';
  upstreamTransportFailureReason = '';
  /** What TLS has established on the connection to the host; undefined without TLS. */
  upstreamSecurity: ConnectionSecurity | undefined = undefined;
  /** Number of upstream tries. */
  attemptCount = 0;

  downstream: DownstreamProperties | undefined = undefined;
  /** Inferred from x-forwarded-for; empty: that of the connection. */
  inferredRemoteAddress = '';
  connectionId = 0;
  /** Of a TCP connection; empty until it is logged. */
  streamId = '';
  connectionTerminationDetails = '';
  requestedServerName = '';

  /** Monotonic times. Downstream: last byte of the request received, first and last byte of the response sent. */
  lastDownstreamRxMs = UNSET;
  firstDownstreamTxMs = UNSET;
  lastDownstreamTxMs = UNSET;
  /** Upstream, in the last try: first and last byte of the request sent, first and last byte of the response received. */
  firstUpstreamTxMs = UNSET;
  lastUpstreamTxMs = UNSET;
  firstUpstreamRxMs = UNSET;
  lastUpstreamRxMs = UNSET;

  /** The client's address: inferred, or else that of the connection. */
  get downstreamRemoteAddress(): string {
    return this.inferredRemoteAddress !== '' ? this.inferredRemoteAddress : (this.downstream?.remoteText ?? '');
  }

  /** The address of the socket's peer. */
  get downstreamDirectRemoteAddress(): string {
    return this.downstream?.directRemoteText ?? '';
  }

  /** Of the socket itself. */
  get downstreamDirectLocalAddress(): string {
    return this.downstream?.directLocalText ?? '';
  }

  get downstreamLocalAddress(): string {
    return this.downstream?.localText ?? '';
  }

  /** What TLS has established on the client's connection; undefined without TLS. */
  get downstreamSecurity(): ConnectionSecurity | undefined {
    return this.downstream?.security;
  }

  /** Called before a retry: resets what belongs to the previous try. */
  resetTry(): void {
    this.upstreamProtocol = Protocol.None;
    this.upstreamHost = '';
    this.upstreamLocalAddress = '';
    this.upstreamRemoteAddress = '';
    this.upstreamTransportFailureReason = '';
    this.upstreamSecurity = undefined;
    this.firstUpstreamTxMs = UNSET;
    this.lastUpstreamTxMs = UNSET;
    this.firstUpstreamRxMs = UNSET;
    this.lastUpstreamRxMs = UNSET;
  }

  /** Forgets when request and response ended, for a tunnel, in which they do not. */
  forgetEnds(): void {
    this.lastDownstreamRxMs = UNSET;
    this.lastDownstreamTxMs = UNSET;
    this.lastUpstreamTxMs = UNSET;
    this.lastUpstreamRxMs = UNSET;
  }

  /** Prepares the object for a stream that begins now. */
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
    this.upstreamRemoteAddress = '';
    this.upstreamTransportFailureReason = '';
    this.upstreamSecurity = undefined;
    this.attemptCount = 0;
    this.downstream = undefined;
    this.inferredRemoteAddress = '';
    this.connectionId = 0;
    this.streamId = '';
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
