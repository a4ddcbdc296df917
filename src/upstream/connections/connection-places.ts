// Places for connections in the circuit breakers of a cluster and of its host. The code that acquires one releases it exactly once.

import type { Priority } from '../../common/priority.js';
import type { ClusterSpec } from '../cluster-config.js';
import { type Host, NO_BLOCK } from '../hosts/host.js';
import { type ClusterLimits, LimitKind } from '../limits.js';
import { HostWord } from '../shared-words.js';
import type { UpstreamThread } from '../upstream-thread.js';

export interface LimitedCluster {
  readonly limits: ClusterLimits;
  readonly spec: ClusterSpec;
  readonly thread: UpstreamThread;
}

/** Returns false, with nothing acquired, if one of the breakers is open. */
export function tryAcquirePlace({ limits, spec, thread }: LimitedCluster, host: Host, priority: Priority): boolean {
  if (!limits.tryAcquire(LimitKind.Connections, priority)) return false;
  if (spec.maxHostConnections === undefined || host.block === NO_BLOCK) return true;
  if (thread.words.tryAcquire(host.block + HostWord.Connections, spec.maxHostConnections[priority])) return true;
  limits.release(LimitKind.Connections, priority);
  return false;
}

/** Acquires a place even if the breakers are open. */
export function acquirePlace({ limits, spec, thread }: LimitedCluster, host: Host, priority: Priority): void {
  limits.acquire(LimitKind.Connections, priority);
  if (spec.maxHostConnections !== undefined && host.block !== NO_BLOCK)
    thread.words.acquire(host.block + HostWord.Connections);
}

export function releasePlace({ limits, spec, thread }: LimitedCluster, host: Host, priority: Priority): void {
  limits.release(LimitKind.Connections, priority);
  if (spec.maxHostConnections !== undefined && host.block !== NO_BLOCK)
    thread.words.release(host.block + HostWord.Connections);
}
