// What the connections of one pool have in common, besides their cluster and host.

import type { SharedObjects } from './passthrough.js';
import type { ClientEnds } from './proxy-header.js';

/** What requests determine of their connections. */
export interface ConnectionTraits {
  /** Connections with other traits have another key. */
  readonly key: string;
  /** The host that the requests name, in lower case, '' if they name none; undefined where connections do not depend on it. */
  readonly authority: string | undefined;
  /** The client whose addresses the host gets; undefined: it gets none. */
  readonly client: ClientEnds | undefined;
  /** The filter state that an internal listener gets; undefined: none. */
  readonly shared?: SharedObjects | undefined;
}

export interface ConnectOptions {
  /** Offered by ALPN, in wire form, if the TLS context offers nothing; empty: nothing. */
  readonly alpn: Uint8Array;
  /** It is offered in place of what the context offers. */
  readonly replacesAlpn?: boolean;
  /** Undefined: the connections are for any request. */
  readonly traits: ConnectionTraits | undefined;
}

/** The options of connections that are not opened for a request. */
export const NO_CONNECT_OPTIONS: ConnectOptions = { alpn: new Uint8Array(), traits: undefined };

/** `client` may change or end; its addresses are copied. */
export function connectionTraits(
  authority: string | undefined,
  client: ClientEnds | undefined,
  shared?: SharedObjects,
): ConnectionTraits {
  const state = shared === undefined ? '' : sharedKey(shared);
  if (client === undefined) return { key: `${state}${authority ?? ''}`, authority, client, shared };
  const { localText, remoteText } = client;
  // No address or name has a NUL byte.
  const key = `${state}${remoteText}\0${localText}\0${authority ?? ''}`;
  return { key, authority, client: { localText, remoteText }, shared };
}

/** Requests with other objects have other connections: none sees those of another, nor passes on what another may not. */
function sharedKey(shared: SharedObjects): string {
  return `${JSON.stringify(shared.map(([key, { isReadOnly, sharing, text }]) => [key, text, sharing, isReadOnly]))}\0`;
}
