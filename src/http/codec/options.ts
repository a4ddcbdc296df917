// The configurable options of the codecs.

/** How the codec writes the names of header fields. */
export const enum NameCase {
  AsReceived = 0,
  /** Words begin with a capital letter and go on in lower case: `Content-Type`. */
  Proper = 1,
  /** As received; fields that were added to a received head are in proper case. */
  ProperIfAdded = 2,
}

export interface Http1Options {
  /** Limit for start line, fields and empty line together; at most MAX_BLOCK_BYTES. */
  maxHeadBytes: number;
  maxHeaders: number;
  /** Serves HTTP/1.0 requests; otherwise they are answered with 426. */
  acceptHttp10?: boolean;
  /** Accepts any token as a method; otherwise unknown methods are refused. */
  allowsCustomMethods?: boolean;
  /** Refuses https URLs as request targets: the client believes that this plaintext connection is encrypted. */
  refusesHttpsTargets?: boolean;
  /** Discards received trailers and sends none. */
  dropsTrailers?: boolean;
  /** The case of header names in sent heads; undefined: as received. */
  nameCase?: NameCase;
}

export const DEFAULT_HTTP1_OPTIONS: Http1Options = { maxHeadBytes: 60 * 1024, maxHeaders: 100, acceptHttp10: false };

/** The defaults are those of Envoy 1.40. */
export interface Http2Options {
  /** Size of the table in which header fields of the peer are indexed. */
  tableBytes: number;
  /** How many streams of the peer may be open at once. */
  maxStreams: number;
  /** How many bytes of bodies the peer may send before they are consumed: in one stream, and on the connection. */
  streamWindow: number;
  connectionWindow: number;
  /** Limits of frames that the peer does not read, of any type and of control frames. */
  maxOutboundFrames: number;
  maxOutboundControlFrames: number;
  /** Limit of consecutive frames without payload that end nothing. */
  maxEmptyFrames: number;
  maxPriorityFramesPerStream: number;
  maxWindowUpdatesPerDataFrame: number;
  /** An invalid message ends its stream only, not the connection. */
  keepsConnectionOnInvalidMessage: boolean;
  /** How requests with '_' in a header name are handled. */
  underscores: 'ALLOW' | 'REJECT_REQUEST' | 'DROP_HEADER';
  usesHuffman: boolean;
  /** Clients may open tunnels of any protocol, such as WebSocket (RFC 8441). */
  allowsConnectProtocol: boolean;
  /** Sends PING when the connection has been silent for `intervalMs`, and ends it without an answer after `timeoutMs`; 0: never. */
  keepaliveIntervalMs: number;
  keepaliveTimeoutMs: number;
  /** Up to this part of the interval is added to it at random, in percent. */
  keepaliveJitterPercent: number;
  /** A request on a connection on which nothing was received for this long begins with a PING; 0: never. Only for connections to hosts. */
  keepaliveIdleMs: number;
  /** How long the peer may accept none of a complete message's queued bytes; 0: no limit. */
  flushTimeoutMs: number;
  /** Limit for the names and values of a header section together, and for their number. */
  maxHeadBytes: number;
  maxHeaders: number;
}

export const DEFAULT_HTTP2_OPTIONS: Http2Options = {
  tableBytes: 4096,
  maxStreams: 1024,
  streamWindow: 16 * 1024 * 1024,
  connectionWindow: 24 * 1024 * 1024,
  maxOutboundFrames: 10_000,
  maxOutboundControlFrames: 1000,
  maxEmptyFrames: 1,
  maxPriorityFramesPerStream: 100,
  maxWindowUpdatesPerDataFrame: 10,
  keepsConnectionOnInvalidMessage: false,
  underscores: 'ALLOW',
  usesHuffman: true,
  allowsConnectProtocol: false,
  keepaliveIntervalMs: 0,
  keepaliveTimeoutMs: 0,
  keepaliveJitterPercent: 15,
  keepaliveIdleMs: 0,
  flushTimeoutMs: 5 * 60_000,
  maxHeadBytes: 60 * 1024,
  maxHeaders: 100,
};

/** How long the host of a tunnel that has ended may accept none of the rest: longer than that of other requests, which it may read slowly. */
export const TUNNEL_FLUSH_MS = 60_000;
