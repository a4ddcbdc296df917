// The content of traces, independent of the format: envoy.data.tap.v3.TraceWrapper.

/** A header field; pseudo-headers begin with a colon. */
export interface TracedHeader {
  readonly key: string;
  readonly value: string;
  /** Replaces `value` if that is not UTF-8. */
  readonly raw: Uint8Array | undefined;
}

export interface TracedBody {
  readonly bytes: Uint8Array;
  /** More was received than is kept. */
  readonly isTruncated: boolean;
}

export interface TracedMessage {
  readonly headers: readonly TracedHeader[];
  /** Undefined: there was none. */
  readonly body: TracedBody | undefined;
  readonly trailers: readonly TracedHeader[];
  /** When the headers were received, in ms since 1970; undefined: not recorded. */
  readonly receivedMs: number | undefined;
}

/** Addresses have the forms `127.0.0.1:80`, `[::1]:80` or a path. */
export interface TracedConnection {
  readonly local: string;
  readonly remote: string;
}

/** A request and its response. */
export interface BufferedTrace {
  readonly request: TracedMessage | undefined;
  readonly response: TracedMessage | undefined;
  readonly connection: TracedConnection | undefined;
}

/** The pieces of HttpStreamedTraceSegment, by field number. */
export const enum Piece {
  RequestHeaders = 2,
  RequestBody = 3,
  RequestTrailers = 4,
  ResponseHeaders = 5,
  ResponseBody = 6,
  ResponseTrailers = 7,
}

/** One piece of a request or response. */
export interface TraceSegment {
  readonly traceId: number;
  readonly piece: Piece;
  readonly content: readonly TracedHeader[] | TracedBody;
}

/** Encodes traces in one format, each into a new buffer. */
export interface TraceFormat {
  buffered(trace: BufferedTrace): Uint8Array<ArrayBuffer>;
  segment(segment: TraceSegment): Uint8Array<ArrayBuffer>;
}

/** Splits a socket address into host and port. Returns undefined for the path of a Unix socket. */
export function splitAddress(text: string): { readonly host: string; readonly port: number } | undefined {
  const match = /^(?:\[(.+)\]|([^/@]+)):([0-9]+)$/.exec(text);
  return match === null ? undefined : { host: match[1] ?? match[2]!, port: Number(match[3]) };
}
