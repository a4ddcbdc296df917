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
  /** Of sent heads; undefined: as received. */
  nameCase?: NameCase;
}

export const DEFAULT_HTTP1_OPTIONS: Http1Options = { maxHeadBytes: 60 * 1024, maxHeaders: 100, acceptHttp10: false };
