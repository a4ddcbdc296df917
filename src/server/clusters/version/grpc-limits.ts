// The circuit breakers of an HTTP/2 cluster for gRPC calls of the primary. What calls hold belongs to the cluster's name, so
// calls continue when another version of the cluster, or none, takes over.

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

  /** `block`: the cluster's block in `words`. */
  constructor(words: SharedWordsOwner, block: number, thresholds: RuntimeThresholds, stats: Scope) {
    this.#shared = new SharedWords(words.handle(PRIMARY));
    this.#block = block;
    this.#stats = stats;
    this.#limits = new ClusterLimits(this.#shared, block, thresholds);
  }

  /** Sets the thresholds of another version of the cluster. */
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

  /** Called when nothing is held and the block is freed. A connection that opens later, without a call, is not counted. */
  end(): void {
    this.#isOver = true;
  }
}

const KINDS = {
  connections: LimitKind.Connections,
  pending: LimitKind.PendingRequests,
  requests: LimitKind.Requests,
} as const;
