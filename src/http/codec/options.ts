// What configurations say about the codecs of a protocol.

export interface Http1Options {
  /** Start line, fields and empty line together; at most LARGEST_BLOCK. */
  maxHeadBytes: number;
  maxHeaders: number;
  /** Whether requests in HTTP/1.0 are served; otherwise they are answered with 426. */
  acceptHttp10?: boolean;
  /** Whether any token is a method; otherwise those that are not known are refused. */
  allowsCustomMethods?: boolean;
  /** Whether a target may not be an https URL: its client takes a connection for encrypted that is not. */
  refusesHttpsTargets?: boolean;
  /** Trailers are read and go no further, and none are sent. */
  dropsTrailers?: boolean;
}

export const DEFAULT_HTTP1_OPTIONS: Http1Options = { maxHeadBytes: 60 * 1024, maxHeaders: 100, acceptHttp10: false };
