// The circuit breakers of a cluster that speaks HTTP/2, as gRPC calls of the primary meet them. What calls hold belongs to the
// name of the cluster: they go on when another version of it takes over, or none does.

import type { CallLimit, CallLimits } from '../../../grpc/cluster-hosts.js';
import { ClusterStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';
import { ClusterLimits, LimitKind, type RuntimeThresholds } from '../../../upstream/limits.js';
import { PRIMARY, SharedWords, type SharedWordsOwner } from '../../../upstream/shared-words.js';

export class GrpcLimits implements CallLimits {
  readonly #shared: SharedWords;
  readonly #block: number;
  readonly #stats: Scope;
  #limits: ClusterLimits;
  #isOver = false;

  /** `block` is the cluster's in `words`. */
  constructor(words: SharedWordsOwner, block: number, thresholds: RuntimeThresholds, stats: Scope) {
    this.#shared = new SharedWords(words.handle(PRIMARY));
    this.#block = block;
    this.#stats = stats;
    this.#limits = new ClusterLimits(this.#shared, block, thresholds);
  }

  /** Those of another version of the cluster hold from now on. */
  setThresholds(thresholds: RuntimeThresholds): void {
    this.#limits = new ClusterLimits(this.#shared, this.#block, thresholds);
  }

  tryAcquire(kind: CallLimit): boolean {
    if (this.#isOver || this.#limits.tryAcquire(KINDS[kind])) return true;
    this.#stats.increment(ClusterStats.at.upstream_rq_pending_overflow);
    return false;
  }

  acquire(kind: CallLimit): void {
    if (!this.#isOver) this.#limits.acquire(KINDS[kind]);
  }

  release(kind: CallLimit): void {
    if (!this.#isOver) this.#limits.release(KINDS[kind]);
  }

  /** Nothing is held, and the block is given back. A connection that is opened later, for nobody, counts nowhere. */
  end(): void {
    this.#isOver = true;
  }
}

const KINDS = {
  connections: LimitKind.Connections,
  pending: LimitKind.PendingRequests,
  requests: LimitKind.Requests,
} as const;
