// The properties of one request or TCP connection, for logs and for values of formats.
//
// An object is reused for many streams: its owner calls reset() and sets the fields as they become known.

import type { Metadata } from '../../config/generated/api.js';
import type { ConnectionSecurity } from '../../io/tls/connection-security.js';
import type { DetectedProtocols } from '../../io/tls/detected-protocols.js';
import { DynamicMetadata } from './dynamic-metadata.js';
import { FilterState } from './filter-state.js';
import type { HeaderView } from './header-view.js';
import { ResponseFlag } from './response-flags.js';
import { StreamBytes } from './stream-bytes.js';

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
  /** `localText` is the original destination of a redirected connection. */
  readonly isLocalRestored?: boolean;
  /** What TLS has established; undefined without TLS, and before the handshake has succeeded. */
  readonly security: ConnectionSecurity | undefined;
  /** Why its TLS handshake failed; '' unless it did. */
  readonly transportFailure: string;
  /** What listener filters have detected; undefined if that is nothing. */
  readonly detected: DetectedProtocols | undefined;
  /** What network filters have set; undefined: nothing. */
  readonly dynamicMetadata?: DynamicMetadata | undefined;
  /** What network filters have set, or the opener of a connection to an internal listener shares; undefined: nothing. */
  readonly filterState?: FilterState | undefined;
}

/** A cluster in logs. */
export interface ClusterNames {
  readonly name: string;
  /** alt_stat_name, or else `name`. */
  readonly observabilityName: string;
  readonly metadata?: Metadata | undefined;
}

/** A host in logs. */
export interface HostNames {
  /** `127.0.0.1:80`, `[::1]:80` or a path. */
  readonly address: string;
  /** '': it has only an address. */
  readonly hostname: string;
  readonly metadata: Metadata | undefined;
  readonly locality?: { readonly region: string; readonly zone: string; readonly subZone: string };
  /** Metadata of the host's group of endpoints. */
  readonly localityMetadata?: Metadata | undefined;
}

/** A route in logs. */
export interface RouteNames {
  readonly metadata: Metadata | undefined;
  readonly virtualHostMetadata: Metadata | undefined;
}

/** The filter chain of a connection, in logs. */
export interface ChainNames {
  readonly filterChainName: string;
  readonly metadata: Metadata | undefined;
  readonly listenerMetadata: Metadata | undefined;
  /** The traffic direction of the listener, by its number in the API; absent: unspecified. */
  readonly direction?: 1 | 2;
}

/** A span in logs. */
export interface SpanNames {
  /** Lower-case hexadecimal; '' if its tracer has none. */
  readonly traceId: string;
  readonly spanId: string;
}

/** A query to a DNS filter, in logs. */
export interface DnsQueryNames {
  /** Absent values of a query that could not be parsed are shown as '-'. */
  readonly isParsed: boolean;
  readonly name: string;
  readonly type: number;
  readonly answers: number;
}

/** How a connection ended, or Normal while it is open. */
export const enum CloseType {
  Normal = 0,
  LocalReset = 1,
  RemoteReset = 2,
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

  /** Why the request is traced: see TraceReason; 0: it is not. */
  traceReason = 0;
  /** The span of the request; undefined without tracing. */
  span: SpanNames | undefined = undefined;
  /** A filter closes the client's connection after the response. */
  drainsConnection = false;
  /** The address that a filter has chosen for the first try; '': none. Without that host, a strict choice fails the request. */
  overrideHost = '';
  /** Name and port of the host for a dynamic forward proxy, which a filter has determined; '' if none has. */
  requestedHost = '';
  isOverrideStrict = false;
  /** Status of the answer to a request that fails because of a strict choice. */
  strictStatus = 503;

  /** The record that caused this: one of the API's AccessLogType. */
  accessLogType:
    | 'NotSet'
    | 'DownstreamEnd'
    | 'TcpConnectionStart'
    | 'TcpUpstreamConnected'
    | 'TcpPeriodic'
    | 'TcpConnectionEnd'
    | 'UdpSessionEnd'
    | 'UdpPeriodic' = 'NotSet';

  /** The query of a DNS filter; undefined for all other streams. */
  dns: DnsQueryNames | undefined = undefined;

  routeName = '';
  virtualHostName = '';
  virtualClusterName = '';
  route: RouteNames | undefined = undefined;
  chain: ChainNames | undefined = undefined;
  /** The selected cluster. */
  upstreamCluster: ClusterNames | undefined = undefined;
  /** The host of the last try, as `127.0.0.1:80`, `[::1]:80` or a path. */
  upstreamHost = '';
  /** The host of `upstreamHost`. */
  host: HostNames | undefined = undefined;
  /** The hosts of the tries before the last one, and the IDs of their connections (0: none); absent without retries. */
  earlierHosts: (HostNames | undefined)[] | undefined = undefined;
  earlierConnectionIds: number[] | undefined = undefined;
  /** The connection of the last try; 0: none. */
  upstreamConnectionId = 0;
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
  /** The ID of a TCP connection; empty until it is logged. */
  streamId = '';
  connectionTerminationDetails = '';
  /** How the connections ended, and why this side closed them; '' if it did not. */
  downstreamCloseType: CloseType = CloseType.Normal;
  upstreamCloseType: CloseType = CloseType.Normal;
  downstreamLocalCloseReason = '';
  upstreamLocalCloseReason = '';

  /** Bytes between the client and this server; undefined: they are not counted. */
  downstreamBytes: StreamBytes | undefined = undefined;
  /** Bytes of all tries that have ended, and of the running one. */
  readonly upstreamBytes = new StreamBytes();
  runningTryBytes: StreamBytes | undefined = undefined;

  /** Monotonic times. Downstream: last byte of the request received, first and last byte of the response sent. */
  lastDownstreamRxMs = UNSET;
  firstDownstreamTxMs = UNSET;
  lastDownstreamTxMs = UNSET;
  /** Upstream, in the last try: first and last byte of the request sent, first and last byte of the response received. */
  firstUpstreamTxMs = UNSET;
  lastUpstreamTxMs = UNSET;
  firstUpstreamRxMs = UNSET;
  firstUpstreamBodyRxMs = UNSET;
  lastUpstreamRxMs = UNSET;
  /** When the client's connection began and ended. */
  connectionStartMs = UNSET;
  connectionEndMs = UNSET;
  /** The last try: when it began, when it got a connection or none, and when that connection began to connect and was connected. */
  tryStartMs = UNSET;
  poolReadyMs = UNSET;
  upstreamConnectStartMs = UNSET;
  upstreamConnectEndMs = UNSET;

  #dynamicMetadata: DynamicMetadata | undefined;
  #filterState: FilterState | undefined;

  /** What filters have set; undefined: nothing. */
  get dynamicMetadata(): DynamicMetadata | undefined {
    return this.#dynamicMetadata;
  }

  /** What filters have set, for this stream or for its connection; undefined: nothing. */
  get filterState(): FilterState | undefined {
    return this.#filterState ?? this.downstream?.filterState;
  }

  /** Returns the dynamic metadata to add to. */
  ownDynamicMetadata(): DynamicMetadata {
    this.#dynamicMetadata ??= new DynamicMetadata();
    return this.#dynamicMetadata;
  }
  /** Uses the dynamic metadata of the connection. */
  shareDynamicMetadata(metadata: DynamicMetadata): void {
    this.#dynamicMetadata = metadata;
  }

  /** Returns the filter state to add to. */
  ownFilterState(): FilterState {
    this.#filterState ??= new FilterState(this.downstream?.filterState);
    return this.#filterState;
  }

  /** The client's address: inferred, or else that of the connection. */
  get downstreamRemoteAddress(): string {
    return this.inferredRemoteAddress !== '' ? this.inferredRemoteAddress : (this.downstream?.remoteText ?? '');
  }

  /** The address of the socket's peer. */
  get downstreamDirectRemoteAddress(): string {
    return this.downstream?.directRemoteText ?? '';
  }

  /** The local address of the socket itself. */
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

  get downstreamTransportFailureReason(): string {
    return this.downstream?.transportFailure ?? '';
  }

  /** Called before a retry: resets what belongs to the previous try. */
  resetTry(): void {
    this.earlierHosts ??= [];
    this.earlierConnectionIds ??= [];
    this.earlierHosts.push(this.host);
    this.earlierConnectionIds.push(this.upstreamConnectionId);
    this.host = undefined;
    this.upstreamConnectionId = 0;
    this.upstreamCloseType = CloseType.Normal;
    this.upstreamLocalCloseReason = '';
    this.poolReadyMs = UNSET;
    this.upstreamConnectStartMs = UNSET;
    this.upstreamConnectEndMs = UNSET;
    this.firstUpstreamBodyRxMs = UNSET;
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

  /** Adds the bytes of a try that has ended. It may be another one than the running one, if tries overlap. */
  tryEnded(bytes: StreamBytes | undefined): void {
    if (bytes === undefined) return;
    this.upstreamBytes.add(bytes);
    if (this.runningTryBytes === bytes) this.runningTryBytes = undefined;
  }

  /** Called when the response of an earlier try, on `host`, is passed on: the last one changes places with it. */
  returnToTry(host: HostNames | undefined, connectionId: number): void {
    const at = this.earlierHosts?.lastIndexOf(host) ?? -1;
    if (at >= 0) this.earlierHosts![at] = this.host;
    const place = this.earlierConnectionIds?.lastIndexOf(connectionId) ?? -1;
    if (place >= 0) this.earlierConnectionIds![place] = this.upstreamConnectionId;
  }

  /** Prepares the object for another pass of the same request: what is known of the client, and the filter state, stay. */
  restart(): void {
    const { bytesReceived, inferredRemoteAddress, lastDownstreamRxMs, scheme, startRealtimeMs } = this;
    const filterState = this.#filterState;
    this.reset(startRealtimeMs, this.startMonotonicMs);
    Object.assign(this, { bytesReceived, inferredRemoteAddress, lastDownstreamRxMs, scheme });
    this.#filterState = filterState;
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
    this.traceReason = 0;
    this.span = undefined;
    this.drainsConnection = false;
    this.overrideHost = '';
    this.requestedHost = '';
    this.isOverrideStrict = false;
    this.strictStatus = 503;
    this.requestHeaders = undefined;
    this.responseHeaders = undefined;
    this.responseTrailers = undefined;
    this.dns = undefined;
    this.routeName = '';
    this.virtualHostName = '';
    this.virtualClusterName = '';
    this.accessLogType = 'NotSet';
    this.route = undefined;
    this.chain = undefined;
    this.upstreamCluster = undefined;
    this.upstreamHost = '';
    this.host = undefined;
    this.earlierHosts = undefined;
    this.earlierConnectionIds = undefined;
    this.upstreamConnectionId = 0;
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
    this.downstreamCloseType = CloseType.Normal;
    this.upstreamCloseType = CloseType.Normal;
    this.downstreamLocalCloseReason = '';
    this.upstreamLocalCloseReason = '';
    this.downstreamBytes = undefined;
    this.upstreamBytes.reset();
    this.runningTryBytes = undefined;
    this.firstUpstreamBodyRxMs = UNSET;
    this.connectionStartMs = UNSET;
    this.connectionEndMs = UNSET;
    this.tryStartMs = UNSET;
    this.poolReadyMs = UNSET;
    this.upstreamConnectStartMs = UNSET;
    this.upstreamConnectEndMs = UNSET;
    this.#dynamicMetadata = undefined;
    this.#filterState = undefined;
    this.lastDownstreamRxMs = UNSET;
    this.firstDownstreamTxMs = UNSET;
    this.lastDownstreamTxMs = UNSET;
    this.firstUpstreamTxMs = UNSET;
    this.lastUpstreamTxMs = UNSET;
    this.firstUpstreamRxMs = UNSET;
    this.lastUpstreamRxMs = UNSET;
  }
}
