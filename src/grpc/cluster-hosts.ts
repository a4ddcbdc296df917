// The interface through which gRPC channels follow the hosts of clusters.

import type { Address } from '../io/addresses/address.js';

export interface ClusterHosts {
  /** Calls `onHosts` soon and on each change of the hosts. Returns a function that stops this. */
  watchHosts(cluster: string, onHosts: OnHosts): () => void;
  /** Returns the cluster's connect_timeout. */
  connectTimeoutMs(cluster: string): number;
  /** Returns the circuit breakers of the current version of a cluster; undefined: there is no such cluster. */
  callLimits(cluster: string): CallLimits | undefined;
  /** Called for a new connection to a host of the cluster: sets the cluster's socket options on `fd`. */
  connected(cluster: string, fd: number): void;
}

/** Each acquired unit must be released once. */
export interface CallLimits {
  /** Acquires a unit if the breaker is closed. */
  tryAcquire(kind: CallLimit): boolean;
  /** Acquires a unit even if the breaker is open. Used for connections, since a host may always have one. */
  acquire(kind: CallLimit): void;
  release(kind: CallLimit): void;
}

/** Connections, calls waiting for one, and active calls. */
export type CallLimit = 'connections' | 'pending' | 'requests';

/** `addresses`: the usable hosts; `keepalive`: for connections to new hosts. */
export type OnHosts = (addresses: readonly Address[], keepalive: Http2Keepalive | undefined) => void;

/** PING frames that detect a vanished peer (envoy.config.core.v3.KeepaliveSettings). */
export interface Http2Keepalive {
  /** Time from a PING response to the next PING. */
  readonly intervalMs: number;
  /** The connection ends if a PING is not answered within this time. */
  readonly timeoutMs: number;
}
