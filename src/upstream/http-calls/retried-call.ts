// The tries of one call that Baton itself makes: decides about retries by the call's policy, the retry circuit breaker and runtime, waits
// for the back-off interval, and begins the next try. OutgoingCall reports the end of each try.

import { Priority } from '../../common/priority.js';
import type { HeaderBlock } from '../../http/headers/header-block.js';
import type { RetryPolicy } from '../../http/routing/retries/retry-policy.js';
import { RetryDecision, type RetryReset, RetryState } from '../../http/routing/retries/retry-state.js';
import { Timer } from '../../io/time/timing-wheel.js';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { CallingThread } from '../calling-thread.js';
import type { Cluster, ClusterHost } from '../cluster.js';
import { TriedHosts } from '../hosts/tried-hosts.js';
import { LimitKind } from '../limits.js';
import type { UpstreamThread } from '../upstream-thread.js';

/** A call that has not ended. */
export interface RunningCall {
  /** Ends the call; no event follows. */
  cancel(): void;
}

export abstract class RetriedCall<C extends RunningCall = RunningCall> implements RunningCall {
  protected readonly caller: CallingThread;
  /** The current try, or the last one; undefined: it has ended at once. */
  protected current: C | undefined;
  private readonly thread: UpstreamThread;
  private readonly policy: RetryPolicy;
  private readonly state = new RetryState();
  private readonly tried = new TriedHosts();
  private readonly timer = new Timer<RetriedCall>(this, (call) => call.beginNext());
  /** Infinity: the call may last without limit. */
  private readonly endsMs: number;
  /** The cluster whose retry circuit breaker counts this call, from the first retry. */
  private holder: Cluster | undefined;

  /** `timeoutMs`: of all tries and the waits between them; 0: none. */
  protected constructor(caller: CallingThread, policy: RetryPolicy, timeoutMs: number) {
    this.caller = caller;
    this.thread = caller.begin();
    this.policy = policy;
    this.endsMs = timeoutMs > 0 ? this.thread.clock.monotonicMs + timeoutMs : Number.POSITIVE_INFINITY;
    this.state.begin(policy, undefined);
  }

  /** Begins a try. Returns undefined when the call has ended. Throws what OutgoingCall.start() throws. */
  protected abstract startTry(): C | undefined;
  /** Called when the call's timeout has passed between two tries. */
  protected abstract timedOut(): void;
  /** Called when a retry cannot begin: `error` was thrown. */
  protected abstract broke(error: unknown): void;

  /** Begins the first try. Returns undefined when the call has ended. Throws what OutgoingCall.start() throws. */
  begin(): this | undefined {
    this.current = this.startTry();
    // A try that has ended at once may be retried.
    return this.current === undefined && !this.isWaiting ? undefined : this;
  }

  cancel(): void {
    this.settle();
    this.current?.cancel();
  }

  // ── For OutgoingCall ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Called before a try calls its pool, whose events may cancel this call, or write to it. */
  began(call: C): void {
    this.current = call;
  }

  /** Called when a try has ended, for any reason. */
  tryEnded(): void {
    if (!this.isWaiting) this.settle();
  }

  /** The remaining part of the call's timeout in milliseconds; 0: it has none. */
  get remainingMs(): number {
    return this.endsMs === Number.POSITIVE_INFINITY ? 0 : Math.max(1, this.endsMs - this.thread.clock.monotonicMs);
  }

  /** The longest duration of a try with a connection in milliseconds; 0: no limit. */
  get tryTimeoutMs(): number {
    const { remainingMs } = this;
    const { perTryTimeoutMs } = this.policy;
    if (remainingMs === 0 || perTryTimeoutMs === 0) return remainingMs || perTryTimeoutMs;
    return Math.min(remainingMs, perTryTimeoutMs);
  }

  /** Picks the host of a try, if the policy requires it one that was not tried. */
  pickHost(cluster: Cluster): ClusterHost | undefined {
    return this.tried.pick(cluster, this.policy.furtherPicks);
  }

  /** Called for the head of a response. Returns whether another try follows: then the response must be dropped. */
  grantForResponse(headers: HeaderBlock, cluster: Cluster, host: ClusterHost): boolean {
    const decision = this.state.hasConditions
      ? this.state.onHeaders(headers.status, headers, this.thread.clock.realtimeMs)
      : RetryDecision.No;
    if (decision !== RetryDecision.No) return this.grant(decision, cluster, host);
    if (this.holder !== undefined) cluster.stats.increment(ClusterStats.at.upstream_rq_retry_success);
    this.settle();
    return false;
  }

  /** Called when a try has ended without a response. `isSent`: the head of the request was sent. Returns whether another try follows. */
  grantForFailure(kind: RetryReset, cluster: Cluster, host: ClusterHost, isSent: boolean): boolean {
    return this.grant(this.state.onReset(kind, isSent), cluster, host);
  }

  /** Called when no further try follows. Releases the place in the circuit breaker. */
  settle(): void {
    this.thread.wheel.cancel(this.timer);
    this.holder?.limits.release(LimitKind.Retries, Priority.Default);
    this.holder = undefined;
  }

  /** The call must not be retried any more: a part of the request was not kept. */
  protected disable(): void {
    this.state.disable();
  }

  /** A try has ended, and the next one has not begun. */
  protected get isWaiting(): boolean {
    return this.timer.isScheduled;
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  private grant(decision: RetryDecision, cluster: Cluster, host: ClusterHost): boolean {
    if (decision === RetryDecision.LimitExceeded)
      cluster.stats.increment(ClusterStats.at.upstream_rq_retry_limit_exceeded);
    if (decision !== RetryDecision.Retry || !this.reserve(cluster)) {
      this.settle();
      return false;
    }
    if (this.policy.avoidsPreviousHosts) this.tried.add(host);
    const waitMs = this.state.backoffMs(this.thread.random.nextUint32() / 2 ** 32);
    this.thread.wheel.reschedule(this.timer, Math.max(1, Math.min(waitMs, this.remainingMs || waitMs)));
    return true;
  }

  private reserve(cluster: Cluster): boolean {
    const { limits, stats } = cluster;
    const { random, runtime } = this.thread;
    if (this.holder === undefined && !limits.tryAcquireRetry(Priority.Default)) {
      stats.increment(ClusterStats.at.upstream_rq_retry_overflow);
      return false;
    }
    this.holder ??= cluster;
    if (!runtime.fraction('upstream.use_retry', { numerator: 100 }).isHit(random)) return false;
    stats.increment(ClusterStats.at.upstream_rq_retry);
    stats.increment(ClusterStats.at.upstream_rq_retry_backoff_exponential);
    return true;
  }

  private beginNext(): void {
    this.caller.begin();
    if (this.thread.clock.monotonicMs >= this.endsMs) {
      this.settle();
      return this.timedOut();
    }
    try {
      this.current = this.startTry();
    } catch (error) {
      this.settle();
      this.broke(error);
    }
  }
}
