// The retries of one request as they take place: those that its policy wants, as far as the circuit breaker for retries and the
// runtime grant them, the hosts that they are at, and what they count.

import { ResponseFlag } from '../../../../access-log/stream/response-flags.js';
import type { Random } from '../../../../common/random.js';
import type { Word64 } from '../../../../common/xxh64.js';
import type { ResponseStream } from '../../../../http/filters/filter.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import type { RetryPolicy } from '../../../../http/routing/retries/retry-policy.js';
import { RetryDecision, type RetryReset, RetryState } from '../../../../http/routing/retries/retry-state.js';
import type { RuntimeFraction } from '../../../../runtime/runtime.js';
import { ClusterStats } from '../../../../stats/layouts/cluster.js';
import type { Cluster, ClusterHost } from '../../../../upstream/cluster.js';
import { LimitKind } from '../../../../upstream/limits.js';

export class Retries extends RetryState {
  readonly #stream: ResponseStream;
  readonly #random: Random;
  readonly #useRetry: RuntimeFraction;
  /** Whose circuit breaker it has a place in, from the first retry until a response is taken or there is none. */
  #holder: Cluster | undefined;
  /** Addresses of the hosts that had a try, where another one avoids them. */
  readonly #previousHosts: string[] = [];

  /** `useRetry`: the share of retries that take place. */
  constructor(stream: ResponseStream, random: Random, useRetry: RuntimeFraction) {
    super();
    this.#stream = stream;
    this.#random = random;
    this.#useRetry = useRetry;
  }

  override begin(policy: RetryPolicy | undefined, headers: HeaderBlock): void {
    super.begin(policy, headers);
    if (this.#previousHosts.length > 0) this.#previousHosts.length = 0;
  }

  /**
   * The host of a try: one that the request has not been at, where its policy wants that and the picks that it allows find one.
   * @param hash of the request, if it has one and the cluster chooses by it
   */
  pickHost(cluster: Cluster, hash: Word64 | undefined): ClusterHost | undefined {
    const previous = this.#previousHosts;
    let host = cluster.pickHost(hash);
    // Where it has been at none or at all of them there is nothing to be found.
    const most = previous.length > 0 && previous.length < cluster.hostCount ? this.policy.furtherPicks : 0;
    for (let attempt = 1; attempt <= most && host !== undefined && previous.includes(host.address); attempt++) {
      host = cluster.pickHost(hash, attempt);
    }
    return host;
  }

  /** The try at this host is over, and another one begins. */
  leave({ address }: ClusterHost): void {
    if (this.policy.avoidsPreviousHosts && !this.#previousHosts.includes(address)) this.#previousHosts.push(address);
  }

  /** The head of a response of `cluster` has come, `nowMs` since 1970: whether there is another try in its place. */
  grantForResponse(headers: HeaderBlock, cluster: Cluster, nowMs: number): boolean {
    const decision = this.hasConditions ? this.onHeaders(headers.status, headers, nowMs) : RetryDecision.No;
    if (decision !== RetryDecision.No) return this.#grant(decision, cluster);
    if (this.#holder !== undefined) cluster.stats.increment(ClusterStats.at.upstream_rq_retry_success);
    this.end();
    return false;
  }

  /** A try ended without a response head, with the request's head sent or not: whether there is another one. */
  grantForFailure(kind: RetryReset, cluster: Cluster, isSent: boolean): boolean {
    return this.#grant(this.onReset(kind, isSent), cluster);
  }

  /** There is no further try. The cluster may have been replaced meanwhile by one with another circuit breaker. */
  end(): void {
    this.#holder?.limits.release(LimitKind.Retries, this.#priority);
    this.#holder = undefined;
  }

  #grant(decision: RetryDecision, cluster: Cluster): boolean {
    if (decision === RetryDecision.LimitExceeded) this.#countLimitExceeded(cluster);
    if (decision === RetryDecision.Retry && this.#takePlace(cluster)) return true;
    this.end();
    return false;
  }

  #takePlace(cluster: Cluster): boolean {
    const { limits, stats } = cluster;
    if (this.#holder === undefined && !limits.tryAcquireRetry(this.#priority)) {
      stats.increment(ClusterStats.at.upstream_rq_retry_overflow);
      this.#stream.info.responseFlags |= ResponseFlag.UpstreamOverflow;
      return false;
    }
    this.#holder ??= cluster;
    if (!this.#useRetry.isHit(this.#random)) return false;
    stats.increment(ClusterStats.at.upstream_rq_retry);
    const { upstream_rq_retry_backoff_exponential: usual, upstream_rq_retry_backoff_ratelimited: asked } =
      ClusterStats.at;
    stats.increment(this.waitsForReset ? asked : usual);
    return true;
  }

  #countLimitExceeded(cluster: Cluster): void {
    cluster.stats.increment(ClusterStats.at.upstream_rq_retry_limit_exceeded);
    this.#stream.info.responseFlags |= ResponseFlag.UpstreamRetryLimitExceeded;
  }

  get #priority() {
    return this.#stream.route!.priority;
  }
}
