// The circuit breakers of a cluster that speaks HTTP/2, as gRPC calls of the primary meet them.

import type { CallLimit, CallLimits } from '../../grpc/cluster-hosts.js';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { Scope } from '../../stats/thread-stats.js';
import { ClusterLimits, LimitKind, type RuntimeThresholds } from '../../upstream/limits.js';
import { PRIMARY, SharedWords, type SharedWordsOwner } from '../../upstream/shared-words.js';

export class GrpcLimits implements CallLimits {
  readonly #limits: ClusterLimits;
  readonly #stats: Scope;
  readonly #held: Record<CallLimit, number> = { connections: 0, pending: 0, requests: 0 };
  #isOver = false;

  /** `block` is the cluster's in `words`. */
  constructor(words: SharedWordsOwner, block: number, thresholds: RuntimeThresholds, stats: Scope) {
    this.#limits = new ClusterLimits(new SharedWords(words.handle(PRIMARY)), block, thresholds);
    this.#stats = stats;
  }

  tryAcquire(kind: CallLimit): boolean {
    if (this.#isOver) return true;
    if (!this.#limits.tryAcquire(KINDS[kind])) {
      this.#stats.increment(ClusterStats.at.upstream_rq_pending_overflow);
      return false;
    }
    this.#held[kind]++;
    return true;
  }

  acquire(kind: CallLimit): void {
    if (this.#isOver) return;
    this.#limits.acquire(KINDS[kind]);
    this.#held[kind]++;
  }

  release(kind: CallLimit): void {
    if (this.#isOver) return;
    this.#limits.release(KINDS[kind]);
    this.#held[kind]--;
  }

  /** The cluster is gone, or another version of it counts from now on; calls may go on. */
  stop(): void {
    for (const kind of ['connections', 'pending', 'requests'] as const) while (this.#held[kind] > 0) this.release(kind);
    this.#isOver = true;
  }
}

const KINDS = {
  connections: LimitKind.Connections,
  pending: LimitKind.PendingRequests,
  requests: LimitKind.Requests,
} as const;
