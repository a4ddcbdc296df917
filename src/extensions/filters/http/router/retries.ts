// The retries of one request: granted by its policy, the retry circuit breaker and runtime. Also tracks tried hosts and counts
// retries.

import { ResponseFlag } from '../../../../access-log/stream/response-flags.js';
import type { Random } from '../../../../common/random.js';
import type { Word64 } from '../../../../common/xxh64.js';
import type { ResponseStream } from '../../../../http/filters/filter.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import type { MetadataMatch } from '../../../../http/routing/actions/metadata-match.js';
import type { RetryPolicy } from '../../../../http/routing/retries/retry-policy.js';
import { RetryDecision, type RetryReset, RetryState } from '../../../../http/routing/retries/retry-state.js';
import type { RuntimeFraction } from '../../../../runtime/runtime.js';
import { ClusterStats } from '../../../../stats/layouts/cluster.js';
import { RouteStats } from '../../../../stats/layouts/route.js';
import type { Cluster, ClusterHost } from '../../../../upstream/cluster.js';
import type { HostOverrides } from '../../../../upstream/hosts/host-overrides.js';
import { TriedHosts } from '../../../../upstream/hosts/tried-hosts.js';
import { LimitKind } from '../../../../upstream/limits.js';
import type { RequestCounts } from './request-counts.js';

export class Retries extends RetryState {
  readonly #stream: ResponseStream;
  readonly #random: Random;
  readonly #useRetry: RuntimeFraction;
  /**
   * The cluster whose retry circuit breaker counts this request, from the first retry until a response is accepted or none is
   * left.
   */
  #holder: Cluster | undefined;
  /** Undefined: the request is counted for its cluster only. Set before begin(). */
  counts: RequestCounts | undefined;
  /** Tried hosts, if the policy avoids them. */
  readonly #tried = new TriedHosts();
  /** The addresses that the request names and no try has had; undefined: they are not known yet. */
  #named: string[] | undefined;

  /** `useRetry`: the fraction of retries that take place. */
  constructor(stream: ResponseStream, random: Random, useRetry: RuntimeFraction) {
    super();
    this.#stream = stream;
    this.#random = random;
    this.#useRetry = useRetry;
  }

  override begin(policy: RetryPolicy | undefined, headers: HeaderBlock | undefined): void {
    super.begin(policy, headers);
    this.#tried.clear();
    this.#named = undefined;
    this.hasStrictHost = false;
  }

  /** A filter insists on the host of the last pick: without it the request fails. */
  hasStrictHost = false;

  /**
   * Picks the host of a try. If the policy requires it, avoids tried hosts within the configured number of picks.
   * @param hash of the request, if it has one and the cluster picks by hash
   * @param match metadata of the request, if it has some and the cluster has subsets
   */
  pickHost(
    cluster: Cluster,
    headers: HeaderBlock,
    hash: Word64 | undefined,
    match: MetadataMatch | undefined,
  ): ClusterHost | undefined {
    if (this.#stream.info.overrideHost !== '') {
      const chosen = this.overrideHost(cluster);
      if (chosen !== undefined || this.hasStrictHost) return chosen;
    } else this.hasStrictHost = false;
    const { overrides } = cluster;
    if (overrides === undefined) return this.#tried.pick(cluster, this.policy.furtherPicks, hash, match);
    const host =
      this.#nextNamed(cluster, overrides, headers) ?? this.#tried.pick(cluster, this.policy.furtherPicks, hash, match);
    if (host !== undefined) overrides.select(this.#stream.info, host.address);
    return host;
  }

  /** Returns the host of the next address that the request names; undefined: there is none left. */
  #nextNamed(cluster: Cluster, overrides: HostOverrides, headers: HeaderBlock): ClusterHost | undefined {
    this.#named ??= overrides.addresses(headers, this.#stream.info);
    for (let address = this.#named.shift(); address !== undefined; address = this.#named.shift()) {
      const host = cluster.namedHostAt(address);
      if (host !== undefined) return host;
    }
    return undefined;
  }

  /** Returns the host that a filter has chosen for the first try, in place of another choice unless hasStrictHost. */
  overrideHost(cluster: Cluster): ClusterHost | undefined {
    const { info } = this.#stream;
    const chosen = cluster.overrideHost(info.overrideHost);
    info.overrideHost = '';
    this.hasStrictHost = info.isOverrideStrict;
    return chosen === undefined && this.hasStrictHost ? cluster.countNoHost() : chosen;
  }

  /** Called when a try on this host has ended and a retry begins. */
  addPreviousHost(host: ClusterHost): void {
    if (this.policy.avoidsPreviousHosts) this.#tried.add(host);
  }

  /** Called for the head of a response from `cluster`, at `nowMs` since 1970. Returns whether to retry. */
  grantForResponse(headers: HeaderBlock, cluster: Cluster, nowMs: number): boolean {
    const decision = this.hasConditions ? this.onHeaders(headers.status, headers, nowMs) : RetryDecision.No;
    if (decision !== RetryDecision.No) return this.#grant(decision, cluster);
    if (this.#holder !== undefined) {
      cluster.stats.increment(ClusterStats.at.upstream_rq_retry_success);
      this.counts?.increment(RouteStats.at.upstream_rq_retry_success);
    }
    this.end();
    return false;
  }

  /** Called when a try ended without response head. `isSent`: the request's head was sent. Returns whether to retry. */
  grantForFailure(kind: RetryReset, cluster: Cluster, isSent: boolean): boolean {
    return this.#grant(this.onReset(kind, isSent), cluster);
  }

  /** Called when a try has timed out and goes on. Returns whether another one begins beside it. */
  grantForSlowness(cluster: Cluster): boolean {
    return this.#grant(this.onSlowness(), cluster);
  }

  /** Called when no retry follows. Releases the place in the circuit breaker, even if the cluster was replaced meanwhile. */
  end(): void {
    this.#holder?.limits.release(LimitKind.Retries, this.#priority);
    this.#holder = undefined;
  }

  #grant(decision: RetryDecision, cluster: Cluster): boolean {
    if (decision === RetryDecision.LimitExceeded) this.#countLimitExceeded(cluster);
    if (decision === RetryDecision.Retry && this.#reserve(cluster)) return true;
    this.end();
    return false;
  }

  #reserve(cluster: Cluster): boolean {
    const { limits, stats } = cluster;
    if (this.#holder === undefined && !limits.tryAcquireRetry(this.#priority)) {
      stats.increment(ClusterStats.at.upstream_rq_retry_overflow);
      this.counts?.increment(RouteStats.at.upstream_rq_retry_overflow);
      this.#stream.info.responseFlags |= ResponseFlag.UpstreamOverflow;
      return false;
    }
    this.#holder ??= cluster;
    if (!this.#useRetry.isHit(this.#random)) return false;
    stats.increment(ClusterStats.at.upstream_rq_retry);
    this.counts?.increment(RouteStats.at.upstream_rq_retry);
    const { upstream_rq_retry_backoff_exponential: exponential, upstream_rq_retry_backoff_ratelimited: rateLimited } =
      ClusterStats.at;
    stats.increment(this.waitsForReset ? rateLimited : exponential);
    return true;
  }

  #countLimitExceeded(cluster: Cluster): void {
    cluster.stats.increment(ClusterStats.at.upstream_rq_retry_limit_exceeded);
    this.counts?.increment(RouteStats.at.upstream_rq_retry_limit_exceeded);
    this.#stream.info.responseFlags |= ResponseFlag.UpstreamRetryLimitExceeded;
  }

  get #priority() {
    return this.#stream.route!.priority;
  }
}
