// A thread that makes its own calls to hosts of clusters: the primary, or a worker for its extensions.

import type { ClusterReference } from './cluster-manager.js';
import type { UpstreamThread } from './upstream-thread.js';

export interface CallingThread {
  /**
   * Begins a turn and returns the thread's context. Required before use outside the thread's events, because the clock only
   * advances per turn.
   */
  begin(): UpstreamThread;
  /** Returns the reference to the cluster of that name, which need not exist. */
  reference(cluster: string): ClusterReference;
  /** This server's own address, for x-forwarded-for. */
  readonly ip: string;
  /** Returns the hosts of a service without a cluster (GoogleGrpc.target_uri). Only the primary has this. */
  target?(uri: string): CallTarget;
}

export interface CallTarget {
  readonly reference: ClusterReference;
  /** Called when the caller no longer uses the target. */
  release(): void;
}
