// What the connections of one pool have in common, besides their cluster and host.

export interface ConnectOptions {
  /** Offered by ALPN, in wire form, if the TLS context offers nothing; empty: nothing. */
  readonly alpn: Uint8Array;
  /** It is offered in place of what the context offers. */
  readonly replacesAlpn?: boolean;
  /** The host that the requests name, in lower case, '' if they name none; undefined where connections do not depend on it. */
  readonly authority: string | undefined;
}

/** Of connections that are not made for requests. */
export const NO_CONNECT_OPTIONS: ConnectOptions = { alpn: new Uint8Array(), authority: undefined };
