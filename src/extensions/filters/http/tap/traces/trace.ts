// What a tap tells of requests: envoy.data.tap.v3.TraceWrapper before it is written in one of its formats.

/** A header field; pseudo-headers begin with a colon. */
export interface TracedHeader {
  readonly key: string;
  readonly value: string;
  /** In place of `value` when that is not UTF-8. */
  readonly raw: Uint8Array | undefined;
}

export interface TracedBody {
  readonly bytes: Uint8Array;
  /** More came than is kept. */
  readonly isTruncated: boolean;
}

export interface TracedMessage {
  readonly headers: readonly TracedHeader[];
  /** Undefined: none came. */
  readonly body: TracedBody | undefined;
  readonly trailers: readonly TracedHeader[];
  /** When the headers came, in ms since 1970; undefined: it is not recorded. */
  readonly receivedMs: number | undefined;
}

/** Addresses as `127.0.0.1:80`, `[::1]:80` or a path. */
export interface TracedConnection {
  readonly local: string;
  readonly remote: string;
}

/** A whole exchange. */
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

/** One piece of an exchange. */
export interface TraceSegment {
  readonly traceId: number;
  readonly piece: Piece;
  readonly content: readonly TracedHeader[] | TracedBody;
}

/** Writes traces in one of the formats, each into memory of its own. */
export interface TraceFormat {
  buffered(trace: BufferedTrace): Uint8Array<ArrayBuffer>;
  segment(segment: TraceSegment): Uint8Array<ArrayBuffer>;
}

/** Tells the address of a socket from the path of a Unix socket. */
export function splitAddress(text: string): { readonly host: string; readonly port: number } | undefined {
  const match = /^(?:\[(.+)\]|([^/@]+)):([0-9]+)$/.exec(text);
  return match === null ? undefined : { host: match[1] ?? match[2]!, port: Number(match[3]) };
}
