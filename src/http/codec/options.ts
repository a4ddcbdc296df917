// The configurable options of the codecs.

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
}

export const DEFAULT_HTTP1_OPTIONS: Http1Options = { maxHeadBytes: 60 * 1024, maxHeaders: 100, acceptHttp10: false };
