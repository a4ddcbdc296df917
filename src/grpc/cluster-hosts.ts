// The hosts of a cluster as gRPC channels follow them.

import type { Address } from '../io/address.js';

export interface ClusterHosts {
  /** Tells of the hosts soon, and whenever they change. Returns what ends it. */
  watchHosts(cluster: string, onHosts: OnHosts): () => void;
  /** The cluster's connect_timeout. */
  connectTimeoutMs(cluster: string): number;
}

/** `addresses` are those that requests may go to, `keepalive` is for connections to hosts that are new. */
export type OnHosts = (addresses: readonly Address[], keepalive: Http2Keepalive | undefined) => void;

/** PING frames by which a connection whose other end has vanished is noticed (envoy.config.core.v3.KeepaliveSettings). */
export interface Http2Keepalive {
  /** Between an answer and the next PING. */
  readonly intervalMs: number;
  /** A PING that is not answered for so long ends the connection. */
  readonly timeoutMs: number;
}
