// The hosts of a cluster as gRPC channels follow them.

import type { Address } from '../io/addresses/address.js';

export interface ClusterHosts {
  /** Tells of the hosts soon, and whenever they change. Returns what ends it. */
  watchHosts(cluster: string, onHosts: OnHosts): () => void;
  /** The cluster's connect_timeout. */
  connectTimeoutMs(cluster: string): number;
  /** The circuit breakers of a cluster as it is now; undefined when there is no such cluster. */
  callLimits(cluster: string): CallLimits | undefined;
  /** A connection to one of its hosts is there: `fd` gets the options that the cluster has for it. */
  connected(cluster: string, fd: number): void;
}

/** What is acquired is released once. */
export interface CallLimits {
  /** Takes one if the breaker is closed. */
  tryAcquire(kind: CallLimit): boolean;
  /** Takes one though the breaker may be open: as the connection to a host, of which there is always one. */
  acquire(kind: CallLimit): void;
  release(kind: CallLimit): void;
}

/** Connections, calls that wait for one, calls that have one. */
export type CallLimit = 'connections' | 'pending' | 'requests';

/** `addresses` are those that requests may go to, `keepalive` is for connections to hosts that are new. */
export type OnHosts = (addresses: readonly Address[], keepalive: Http2Keepalive | undefined) => void;

/** PING frames by which a connection whose other end has vanished is noticed (envoy.config.core.v3.KeepaliveSettings). */
export interface Http2Keepalive {
  /** Between an answer and the next PING. */
  readonly intervalMs: number;
  /** A PING that is not answered for so long ends the connection. */
  readonly timeoutMs: number;
}
