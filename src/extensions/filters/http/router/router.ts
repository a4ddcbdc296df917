// The router: sends a request to a host of its route's cluster, retries it where the route allows, and passes the response to the
// stream. One object per stream object, reused for each request.
//
//   decodeHeaders → #forward → #start → tryConnected → #sendRequest … → tryResponded → tryReceived … → #responseCompleted
//                              ↑ #retry ← #backOff ← Retries ← failure, timeout, retriable response
//
// With hedging a try that has timed out goes on beside the next one: see Tries.

import { UNSET } from '../../../../access-log/stream/stream-info.js';
import type { Word64 } from '../../../../common/xxh64.js';
import type { RequestEncoder, ResetReason } from '../../../../http/codec/streams.js';
import type { LocalReply, ResponseStream, TerminalFilter } from '../../../../http/filters/filter.js';
import { NO_ROOM } from '../../../../http/filters/no-room.js';
import { setGrpcTimeout } from '../../../../http/headers/grpc-timeout.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import type { InternalRedirects } from '../../../../http/routing/actions/internal-redirects.js';
import type { MetadataMatch } from '../../../../http/routing/actions/metadata-match.js';
import type { MirrorPolicy } from '../../../../http/routing/actions/mirror-policy.js';
import { type Route, RouteKind } from '../../../../http/routing/actions/route.js';
import type { HashPolicy } from '../../../../http/routing/hashing/hash-policy.js';
import { RetryReset } from '../../../../http/routing/retries/retry-state.js';
import { becomesGet } from '../../../../http/streams/followed-redirects.js';
import { OVERLOADED } from '../../../../http/streams/stream-answers.js';
import { acceptsTunnel } from '../../../../http/streams/upgrade.js';
import { Deadline } from '../../../../io/time/deadline.js';
import { getLogger } from '../../../../log/logger.js';
import { ClusterStats } from '../../../../stats/layouts/cluster.js';
import { HttpStats } from '../../../../stats/layouts/http.js';
import type { Cluster, ClusterHost } from '../../../../upstream/cluster.js';
import type { ClusterReference } from '../../../../upstream/cluster-manager.js';
import type { ConnectionTraits } from '../../../../upstream/connections/connect-options.js';
import type { HostConnection } from '../../../../upstream/connections/host-connection.js';
import {
  countHostMaxDuration,
  countHostReset,
  countHostSlowness,
  countHostTimeout,
  countRedirect,
  countRetriedResponse,
} from '../../../../upstream/connections/host-outcomes.js';
import { PoolFailure } from '../../../../upstream/pool-failure.js';
import { HostWait } from '../../../../upstream/requested-hosts/host-wait.js';
import type { HostWaiter } from '../../../../upstream/requested-hosts/requested-hosts.js';
import type { UpstreamThread } from '../../../../upstream/upstream-thread.js';
import {
  ALL_DROPPED,
  DROPPED,
  MAINTENANCE,
  maxDurationReached,
  NO_HEALTHY_HOST,
  NO_ROUTE,
  noCluster,
  noResponse,
  timedOut,
} from './answers.js';
import { answerDirectly, answerWithRedirect } from './direct.js';
import { type Failure, poolFailure, resetFailure } from './failures.js';
import { KeptRequest } from './kept-request.js';
import { Mirrors } from './mirrors.js';
import { RequestHash } from './request-hash.js';
import { requestMatch } from './request-match.js';
import { expectedTimeoutMs, NO_TIMEOUTS, type RequestTimeouts, setTimeouts } from './request-timeouts.js';
import { ResponseCounts } from './response-counts.js';
import { Retries } from './retries.js';
import {
  setAllDropped,
  setAttemptCount,
  setDropped,
  setExpectedTimeout,
  setOverloaded,
  setServiceTime,
} from './router-headers.js';
import type { RouterOptions } from './router-options.js';
import { Tries } from './tries.js';
import { recordBudget } from './try-measurement.js';
import { recordConnection, recordHost } from './try-record.js';
import { TryStart } from './try-start.js';
import type { TryTimeout } from './try-timeouts.js';
import { Pause, type TryListener, type UpstreamTry } from './upstream-try.js';

const logger = getLogger('router');

export class Router implements TerminalFilter, TryListener, HostWaiter {
  readonly #stream: ResponseStream;
  readonly #thread: UpstreamThread;
  readonly #options: RouterOptions;
  readonly #retries: Retries;
  readonly #timeouts: RequestTimeouts = { ...NO_TIMEOUTS };
  /** For the whole request. Each request sets it; hardly any reaches it. */
  readonly #deadline: Deadline;
  /** Its current try is read without an accessor, which costs 3 % of a request's time. */
  readonly #tries: Tries;
  readonly #tryStart: TryStart;
  readonly #request: KeptRequest;
  readonly #counts: ResponseCounts;

  #route!: Route<ClusterReference>;
  #cluster!: Cluster;
  /** See Cluster.traitsOf(). */
  #traits: ConnectionTraits | undefined;
  #hasResponse = false;
  /** The host has switched protocols: each direction ends separately. */
  #isTunnel = false;
  /** All of it was received; filters may hold it. */
  #isResponseComplete = false;
  #isActive = false;
  /** The client's send queue is above its high watermark, perhaps because of earlier responses. */
  #isClientBlocked = false;
  /** Created by the first request that waits until its cluster has the host that it names. */
  #hostWait: HostWait | undefined;
  /** Created by the first request of a route with a hash policy. */
  #requestHash: RequestHash | undefined;
  /** The hash of this request, if it has one. */
  #hash: Word64 | undefined;
  /** What its host must have, once it was needed. */
  #match: MetadataMatch | undefined;
  /** When the request was complete. Response times count from here. */
  #requestEndMs = 0;
  /** Created by the first request of a route with mirrors. */
  #mirrors: Mirrors | undefined;
  /** Redirects of hosts that can be followed: the request is kept for them. */
  #redirects: InternalRedirects | undefined;

  constructor(stream: ResponseStream, thread: UpstreamThread, options: RouterOptions) {
    this.#stream = stream;
    this.#thread = thread;
    this.#options = options;
    this.#retries = new Retries(stream, thread.random, options.useRetry);
    this.#request = new KeptRequest(thread.memory);
    this.#counts = new ResponseCounts(stream, options);
    this.#tries = new Tries(stream, thread, this);
    this.#tryStart = new TryStart(stream, thread, options, this.#request, this.#tries);
    this.#deadline = new Deadline(thread.wheel, () => this.#guard(() => this.#routeTimeout()));
  }

  // ── The request ──────────────────────────────────────────────────────────────────────────────────────────────────

  decodeHeaders(headers: HeaderBlock, endStream: boolean): void {
    const stream = this.#stream;
    stream.httpStats.increment(HttpStats.at.rq_total);
    // This thread's route tables are built with ClusterReference as their reference type.
    const route = stream.route as Route<ClusterReference> | undefined;
    if (route === undefined) {
      stream.httpStats.increment(HttpStats.at.no_route);
      return stream.sendLocalReply(NO_ROUTE);
    }
    this.#route = route;
    if (route.kind === RouteKind.Redirect) return answerWithRedirect(stream, route, headers);
    if (route.kind === RouteKind.DirectResponse) return answerDirectly(stream, route, headers);
    const cluster = route.cluster?.current;
    if (cluster === undefined) {
      stream.httpStats.increment(HttpStats.at.no_cluster);
      return stream.sendLocalReply(noCluster(route.clusterNotFoundStatus));
    }
    this.#cluster = cluster;
    this.#counts.begin(route, headers);
    this.#retries.counts = this.#counts.ofRoute;
    if (cluster.maintenance.isHit(this.#thread.random)) return this.#refuseForMaintenance();
    if (cluster.dropRatio > 0 && cluster.dropsRequest()) return this.#refuseAsDropped(cluster.dropRatio === 1);
    this.#forward(headers, endStream);
  }

  decodeData(offset: number, length: number, endStream: boolean): void {
    if (!this.#isActive) return;
    if (this.#mirrors?.isActive) this.#mirrorData(offset, length, endStream);
    const mayRepeat = this.#mayRepeat && !this.#hasResponse;
    if (mayRepeat && this.#request.bytes + length > this.#retryBufferLimit) this.#abandonRetries();
    const { encoder, isRunning } = this.#tries.current;
    // The host has answered and takes no more.
    if (!isRunning && this.#isResponseComplete) return;
    if (!isRunning || (mayRepeat && this.#mayRepeat)) {
      if (!this.#request.keepBody(offset, length)) {
        // A running try can continue without the option to retry.
        if (!isRunning) return this.#stream.sendLocalReply(NO_ROOM);
        this.#abandonRetries();
      }
    }
    if (isRunning) this.#tries.current.bodySent(length);
    // This may end the try, whose encoder still sends the last part.
    if (endStream) this.#requestCompleted();
    if (isRunning) encoder!.data(offset, length, endStream);
    else if (!endStream) this.#stream.pauseRequest(Pause.NoConnection, false);
    if (endStream && this.#isTunnel) this.#stream.requestForwarded();
  }

  #mirrorData(offset: number, length: number, endStream: boolean): void {
    const { bytes } = this.#thread.memory;
    const given = this.#mirrors!.data(bytes.subarray(offset, offset + length), endStream);
    if (given > 0) this.#cluster.stats.increment(ClusterStats.at.retry_or_shadow_abandoned);
  }

  decodeTrailers(trailers: HeaderBlock): void {
    if (!this.#isActive) return;
    if (this.#mirrors?.isActive) this.#mirrorData(0, 0, true);
    const { encoder, isRunning } = this.#tries.current;
    if (!isRunning && this.#isResponseComplete) return;
    if (!isRunning || this.#mayRepeat) {
      if (!this.#request.keepTrailers(trailers)) return this.#stream.sendLocalReply(NO_ROOM);
    }
    this.#requestCompleted();
    if (isRunning) encoder!.trailers(trailers);
    if (this.#isTunnel) this.#stream.requestForwarded();
  }

  get heldBytes(): number {
    return this.#request.bytes;
  }

  /** Another try or a redirect may need the request again. */
  get #mayRepeat(): boolean {
    return this.#retries.isEnabled || this.#redirects !== undefined;
  }

  get #retryBufferLimit(): number {
    return this.#route.requestBufferLimit ?? this.#options.retryBufferLimit;
  }

  /**
   * Gives up further retries because the body is too large to be kept. A running try, or the next one during a backoff, is the
   * last.
   */
  #abandonRetries(): void {
    this.#cluster.stats.increment(ClusterStats.at.retry_or_shadow_abandoned);
    this.#retries.disable();
    this.#redirects = undefined;
    if (this.#tries.current.isRunning) this.#request.dropBody();
  }

  #requestCompleted(): void {
    this.#request.isComplete = true;
    this.#startTimeout();
    this.#tries.current.requestCompleted(this.#hasResponse);
    if (this.#tries.current.isSent) this.#stream.info.lastUpstreamTxMs = this.#requestEndMs;
    // The last byte of the request frees the connection for another request.
    if (this.#isResponseComplete) this.#tries.current.end();
  }

  onResponseBlocked(): void {
    this.#isClientBlocked = true;
    this.#tries.current.pauseResponse();
    for (const other of this.#tries.others) other.pauseResponse();
  }

  onResponseDrained(): void {
    this.#isClientBlocked = false;
    this.#tries.current.resumeResponse();
    for (const other of this.#tries.others) other.resumeResponse();
  }

  onDestroy(reason?: ResetReason): void {
    this.#isClientBlocked = false;
    if (!this.#isActive) return;
    this.#isActive = false;
    this.#mirrors?.end();
    this.#deadline.clear();
    this.#hostWait?.stop();
    this.#tries.current.abort(reason);
    this.#tries.current.span?.abandoned(0, this.#thread.clock.monotonicMs);
    this.#tries.current.span = undefined;
    this.#tries.endOthers(reason);
    this.#retries.end();
    this.#request.drop();
  }

  // ── Its connection ───────────────────────────────────────────────────────────────────────────────────────────────

  tryConnected(current: UpstreamTry, encoder: RequestEncoder, connection: HostConnection): void {
    const { info } = this.#stream;
    if (this.#request.isComplete) current.requestCompleted(false);
    else if (this.#stream.isUpgrade) current.awaitResponse();
    this.#counts.tryBegan();
    recordConnection(info, current, encoder, connection);
    if (this.#isClientBlocked) current.pauseResponse();
    this.#sendRequest(encoder);
  }

  tryUnconnected(current: UpstreamTry, reason: PoolFailure, detail: string): void {
    const { info } = this.#stream;
    if (reason !== PoolFailure.PendingOverflow) recordHost(info, current.host!);
    info.poolReadyMs = this.#thread.clock.monotonicMs;
    const failure = poolFailure(reason, detail);
    info.upstreamTransportFailureReason = failure.transport;
    current.span?.failed(failure, info.poolReadyMs);
    this.#guard(() => this.#failed(current, failure));
  }

  // ── The response ─────────────────────────────────────────────────────────────────────────────────────────────────

  tryInformed(current: UpstreamTry, headers: HeaderBlock): void {
    this.#counts.informed(this.#cluster, current.host!, headers);
    // The client would notice a second try.
    this.#retries.disable();
    this.#settleOn(current);
    if (!this.#mayRepeat) this.#request.dropBody();
    if (this.#stream.passesInformational) this.#stream.encodeInformational(headers);
  }

  tryResponded(current: UpstreamTry, headers: HeaderBlock, endStream: boolean): void {
    const { info } = this.#stream;
    const { status } = headers;
    const now = this.#thread.clock.monotonicMs;
    info.firstUpstreamRxMs = now;
    const host = current.host!;
    current.span?.responded(headers);
    current.observeHealthHeader(headers);
    // A try that has timed out has been retried already.
    const { realtimeMs } = this.#thread.clock;
    if (!current.isRetried && this.#retries.grantForResponse(headers, this.#cluster, realtimeMs)) {
      countRetriedResponse(host, headers);
      this.#cluster.responses.countRetried(status);
      this.#abandonTry(endStream);
      return this.#backOff();
    }
    if (this.#hasOther(current) && this.#retries.isRetriable(headers)) {
      countRetriedResponse(host, headers);
      return this.#awaitOthers(current, endStream);
    }
    this.#settleOn(current);
    const redirects = this.#route.internalRedirects;
    if (redirects?.handles(status) && this.#isRedirected(headers, endStream)) return;
    this.#counts.responded(this.#cluster, host, headers, endStream);
    this.#hasResponse = true;
    if (this.#request.isComplete) this.#request.dropBody();
    if (info.responseCodeDetails === '') info.responseCodeDetails = 'via_upstream';
    if (this.#request.isComplete && !this.#options.suppressEnvoyHeaders)
      setServiceTime(headers, Math.floor(now - this.#requestEndMs));
    if (this.#route.includesAttemptCountInResponse) setAttemptCount(headers, this.#tries.attempts);
    if (this.#hash !== undefined) this.#requestHash!.addCookies(headers);
    this.#route.finalizeResponse(headers, info);
    this.#isTunnel = this.#stream.isUpgrade && acceptsTunnel(this.#request.headers, status);
    if (this.#isTunnel) this.#deadline.clear();
    if (endStream) this.#responseCompleted(now);
    this.#stream.encodeHeaders(headers, endStream);
  }

  /** The client gets the response of `current`: no other try begins or goes on. */
  #settleOn(current: UpstreamTry): void {
    this.#hostWait?.stop();
    this.#retries.end();
    this.#tries.settleOn(current);
  }

  /** Returns whether another try than `ended` may still get a response, or waits for its host. */
  #hasOther(ended: UpstreamTry): boolean {
    return this.#tries.hasOther(ended) || (this.#hostWait?.isWaiting === true && ended !== this.#tries.current);
  }

  /** Drops a try with a bad response, or without one: other tries may have a good one. */
  #awaitOthers(current: UpstreamTry, isResponseComplete = false): void {
    current.span?.abandoned(0, this.#thread.clock.monotonicMs);
    this.#tries.drop(current);
    if (isResponseComplete) current.end();
    else current.abort();
  }

  /** Follows an internal redirect. Returns false if the client gets it instead. */
  #isRedirected(headers: HeaderBlock, endStream: boolean): boolean {
    try {
      return this.#redirect(headers, endStream);
    } catch (error) {
      // The request may be half changed: no other try may send it.
      this.#stream.fault(error);
      return true;
    }
  }

  #redirect(headers: HeaderBlock, endStream: boolean): boolean {
    const { stats } = this.#cluster;
    const isPossible = this.#redirects !== undefined && this.#request.isComplete;
    if (!isPossible || !this.#stream.redirect(this.#redirects!, headers)) {
      stats.increment(ClusterStats.at.upstream_internal_redirect_failed_total);
      return false;
    }
    stats.increment(ClusterStats.at.upstream_internal_redirect_succeeded_total);
    countRedirect(this.#tries.current.host!, headers);
    this.#abandonTry(endStream);
    if (becomesGet(this.#request.headers, headers.status)) this.#request.drop();
    this.#stream.restart(headers, this.#request.take());
    return true;
  }

  tryReceived(offset: number, length: number, endStream: boolean): void {
    const { info } = this.#stream;
    if (info.firstUpstreamBodyRxMs === UNSET) info.firstUpstreamBodyRxMs = this.#thread.clock.monotonicMs;
    if (endStream) {
      this.#counts.ended(this.#tries.current.host!);
      this.#responseCompleted(this.#thread.clock.monotonicMs);
    }
    this.#stream.encodeData(offset, length, endStream);
  }

  tryEnded(trailers: HeaderBlock): void {
    this.#counts.ended(this.#tries.current.host!, trailers);
    this.#tries.current.span?.ended(trailers);
    this.#responseCompleted(this.#thread.clock.monotonicMs);
    this.#stream.encodeTrailers(trailers);
  }

  tryReset(current: UpstreamTry, reason: ResetReason): void {
    // A host may reset the rest of a request that it has answered, except in a tunnel.
    if (this.#isResponseComplete && !this.#isTunnel) return;
    const failure = resetFailure(reason);
    current.span?.failed(failure, this.#thread.clock.monotonicMs);
    countHostReset(current.host!, this.#hasResponse);
    if (!this.#hasResponse) return this.#guard(() => this.#failed(current, failure));
    this.#stream.info.responseFlags |= failure.flag;
    const details = `upstream_reset_after_response_started{${failure.reason.replaceAll(' ', '_')}}`;
    this.#guard(() => this.#resetResponse(details, true));
  }

  #resetResponse(details: string, isByHost: boolean): void {
    this.#counts.cutOff(this.#tries.current.host!);
    this.#stream.resetResponse(details, isByHost);
  }

  /** Called for the last byte of the response. The stream ends when that byte is passed on, or when filters release it. */
  #responseCompleted(now: number): void {
    const { info } = this.#stream;
    this.#isResponseComplete = true;
    this.#deadline.clear();
    info.lastUpstreamRxMs = now;
    this.#tries.current.span?.completed(now);
    // The try continues with the client's direction.
    if (this.#isTunnel && !this.#request.isComplete) return;
    this.#tries.current.responseCompleted();
    // A response that is complete before its request has no response time.
    if (!this.#request.isComplete) return;
    this.#recordBudget(now);
    this.#counts.recordTime(this.#cluster, this.#tries.current.host!, Math.floor(now - this.#requestEndMs));
    this.#tries.current.end();
  }

  /** The timeout counts from the end of the request. */
  #recordBudget(now: number): void {
    const { measurements } = this.#cluster;
    if (measurements !== undefined && this.#request.isComplete)
      recordBudget(measurements, now - this.#requestEndMs, this.#timeouts.timeoutMs);
  }

  // ── Timeouts ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Starts the route's timeout at the end of the request. For an upgrade it runs from the head until the 101. */
  #startTimeout(): void {
    this.#requestEndMs = this.#thread.clock.monotonicMs;
    // When one direction of a tunnel has ended, the other may continue.
    if (this.#timeouts.timeoutMs > 0 && !this.#isTunnel && !this.#isResponseComplete)
      this.#deadline.set(this.#timeouts.timeoutMs);
  }

  /** Called when the timeout of the whole request fires. During a backoff it is not counted for the cluster. */
  #routeTimeout(): void {
    const isTrying = !this.#tries.current.isBackingOff;
    if (isTrying) this.#counts.timedOut(this.#cluster);
    if (this.#tries.current.isRunning)
      countHostTimeout(this.#tries.current.host!, this.#hasResponse, this.#tries.current.isSlow);
    this.#recordBudget(this.#thread.clock.monotonicMs);
    this.#tries.current.wholeTimeout();
    const answer = timedOut('response_timeout', this.#timeouts.isTimeoutEmpty);
    for (const other of this.#tries.others) this.#countOther(other, answer.status);
    this.#answerTimeout(answer, isTrying);
  }

  /** Counts the timeout of a try that goes on beside the current one: as in Envoy, each is a timeout and a response. */
  #countOther(other: UpstreamTry, status: number): void {
    this.#counts.timedOut(this.#cluster);
    countHostTimeout(other.host!, false, other.isSlow);
    other.wholeTimeout();
    this.#counts.answered(this.#cluster, status, other.host);
  }

  tryTimedOut(current: UpstreamTry, timeout: TryTimeout): void {
    const isSoft = this.#timeouts.hedges && timeout.isSlowness;
    this.#guard(() => (isSoft ? this.#hedge(current) : this.#abandonOnTimeout(current, timeout)));
  }

  /** Begins another try beside one that has timed out, if the request may be retried. As in Envoy, it goes on in any case. */
  #hedge(current: UpstreamTry): void {
    if (this.#hasResponse) return;
    if (!current.isSlow) countHostSlowness(current.host!);
    current.isSlow = true;
    // Another try needs the whole request. That of an upgrade is not complete before its response.
    if (current.isRetried || !this.#request.isComplete) return;
    if (!this.#retries.grantForSlowness(this.#cluster)) return;
    if (logger.isDebug) this.#log('a try has timed out and goes on');
    this.#retries.addPreviousHost(current.host!);
    this.#tries.addAnother();
    this.#backOff();
  }

  /** Abandons a try that timed out: retries or answers with 504. */
  #abandonOnTimeout(current: UpstreamTry, { counter, details, flag, isSlowness }: TryTimeout): void {
    current.span?.abandoned(flag, this.#thread.clock.monotonicMs);
    this.#cluster.stats.increment(counter);
    if (isSlowness) countHostTimeout(current.host!, this.#hasResponse);
    else if (!this.#hasResponse) countHostMaxDuration(current.host!);
    current.abort();
    if (!this.#hasResponse && this.#isRetried(current, RetryReset.Local)) return this.#backOff();
    if (!this.#hasResponse && this.#hasOther(current)) return this.#awaitOthers(current);
    if (isSlowness) this.#recordBudget(this.#thread.clock.monotonicMs);
    if (isSlowness) this.#answerTimeout(timedOut(details, this.#timeouts.isTimeoutEmpty), true);
    else this.#answerTimeout(maxDurationReached(details, this.#request.isComplete), false);
  }

  #answerTimeout(answer: LocalReply, isCounted: boolean): void {
    if (logger.isDebug) this.#log(answer.details);
    this.#tries.current.span?.abandoned(0, this.#thread.clock.monotonicMs);
    this.#hostWait?.stop();
    this.#tries.current.abort();
    if (this.#hasResponse) {
      this.#stream.info.responseFlags |= answer.flags;
      return this.#resetResponse(answer.details, false);
    }
    this.#answer(answer, undefined, isCounted);
  }

  // ── Tries ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #forward(headers: HeaderBlock, endStream: boolean): void {
    const route = this.#route;
    const { info } = this.#stream;
    const { suppressEnvoyHeaders } = this.#options;
    if (this.#stream.overload?.filterCheck?.sheds()) {
      this.#stream.httpStats.increment(HttpStats.at.rq_overload_local_reply);
      return this.#stream.sendLocalReply(OVERLOADED);
    }
    this.#isActive = true;
    this.#request.begin(headers, endStream);
    this.#hasResponse = this.#isTunnel = this.#isResponseComplete = false;
    info.upstreamCluster = this.#cluster.spec;
    // The route may report it in fields that it adds.
    info.attemptCount = 1;
    const timeouts = this.#timeouts;
    setTimeouts(timeouts, route, this.#cluster.spec, headers, this.#options.respectsExpectedTimeout);
    this.#tries.reset(timeouts, route.retryPolicy?.perTryIdleTimeoutMs ?? 0);
    // Hashed before the route changes the request.
    const hashPolicy = this.#cluster.hashPolicy ?? route.hashPolicy;
    this.#hash = hashPolicy === undefined ? undefined : this.#hashOf(hashPolicy);
    this.#match = undefined;
    if (!suppressEnvoyHeaders || timeouts.isGrpc) this.#announceTimeout(headers, 0);
    route.finalizeRequest(headers, info, !suppressEnvoyHeaders);
    this.#traits = this.#cluster.traitsOf(headers, info.downstream, info);
    // After the route's changes, which may add retry headers.
    this.#retries.begin(route.retryPolicy ?? this.#options.defaultRetries, headers);
    // A retry needs the head in a later turn.
    this.#redirects = this.#stream.isUpgrade ? undefined : route.internalRedirects;
    if (this.#mayRepeat && !headers.retain()) return this.#stream.sendLocalReply(NO_ROOM);
    if (endStream) this.#startTimeout();
    // An upgrade request sends nothing more before its response.
    else if (this.#stream.isUpgrade && timeouts.timeoutMs > 0) this.#deadline.set(timeouts.timeoutMs);
    this.#start(true);
  }

  /** Begins the copies of the request, with what has arrived of its body while it waited for its host. */
  #mirror(policies: readonly MirrorPolicy<ClusterReference>[]): void {
    const request = this.#request;
    const endStream = request.isComplete && request.isHeadOnly;
    this.#mirrors ??= new Mirrors(this.#options.calls);
    this.#mirrors.begin(policies, request.headers, this.#stream.info, endStream, this.#timeouts.timeoutMs);
    if (endStream) return;
    request.forEachPart((offset, length) => this.#mirrorData(offset, length, false));
    if (request.isComplete) this.#mirrorData(0, 0, true);
  }

  #hashOf(policy: HashPolicy): Word64 | undefined {
    if (!this.#cluster.picksByHash && !this.#cluster.isAggregate) return undefined;
    this.#requestHash ??= new RequestHash();
    return this.#requestHash.of(policy, this.#request.headers, this.#stream.info);
  }

  #matchOf(route: Route<unknown>): MetadataMatch | undefined {
    this.#match ??= requestMatch(route.metadataMatch, this.#stream.info);
    return this.#match;
  }

  /** Sets the headers that announce the timeout of a try to the host. */
  #announceTimeout(headers: HeaderBlock, elapsedMs: number): void {
    const expectedMs = expectedTimeoutMs(this.#timeouts, elapsedMs);
    if (!this.#options.suppressEnvoyHeaders) setExpectedTimeout(headers, expectedMs);
    if (this.#timeouts.isGrpc && expectedMs > 0) setGrpcTimeout(headers, expectedMs);
  }

  /** Begins a try: picks a host and requests a connection from its pool. */
  #start(isFirst = false): void {
    const route = this.#route;
    const cluster = this.#cluster.clusterOfHost(this.#hash);
    const { info } = this.#stream;
    if (this.#cluster.isAggregate) this.#traits = cluster.traitsOf(this.#request.headers, info.downstream, info);
    const host =
      cluster.requestedHosts === undefined
        ? this.#retries.pickHost(
            cluster,
            this.#request.headers,
            this.#hash,
            cluster.hasSubsets ? this.#matchOf(route) : undefined,
          )
        : this.#namedHost(cluster);
    if (host === undefined) {
      // It may be answered already, without room for a request that waits.
      if (this.#hostWait?.isWaiting !== true && this.#isActive)
        this.#answerWithoutHost(this.#hostWait?.refusalOf(cluster));
      return;
    }
    const pool = this.#tryStart.poolOf(route, cluster, host, this.#traits);
    if (pool === undefined) return this.#answerWithoutHost();
    if (isFirst && route.mirrors !== undefined && !this.#stream.isUpgrade) this.#mirror(route.mirrors);
    this.#tryStart.begin(route, this.#cluster.spec.observabilityName, cluster, host, this.#timeouts.perTryMs);
    if (logger.isDebug) this.#log(`cluster '${cluster.spec.name}', try ${this.#tries.attempts} on ${host.address}`);
    // As in Envoy, an aggregate has filters of its own.
    this.#tries.current.wait(this.#tryStart.filtered(pool, this.#cluster, host));
    if (this.#tries.current.isPending) this.#waitForConnection();
  }

  /**
   * Returns the host that a filter has chosen, or else the one that the request names. Begins to wait for that if it must be requested first:
   * see #hostWait.
   */
  #namedHost(cluster: Cluster): ClusterHost | undefined {
    const retries = this.#retries;
    if (this.#stream.info.overrideHost !== '') {
      const chosen = retries.overrideHost(cluster);
      if (chosen !== undefined || retries.hasStrictHost) return chosen;
    } else retries.hasStrictHost = false;
    const named = cluster.namedHost(this.#request.headers, this.#stream.info);
    if (typeof named !== 'string') return named;
    this.#hostWait ??= new HostWait(this);
    if (!this.#hostWait.begin(cluster, named)) return cluster.countNoHost();
    this.#waitForConnection();
    return undefined;
  }

  hostSettled(details = NO_HEALTHY_HOST.details): void {
    this.#hostWait!.settle(details, () => {
      // The cluster may have been replaced, or removed.
      this.#cluster = this.#route.cluster!.current ?? this.#cluster;
      this.#guard(() => this.#start(this.#tries.attempts === 0));
    });
  }

  /** Retains the head beyond the turn, and stops reading the body until there is a connection. */
  #waitForConnection(): void {
    if (!this.#request.headers.retain()) return this.#stream.sendLocalReply(NO_ROOM);
    if (!this.#request.isComplete) this.#stream.pauseRequest(Pause.NoConnection, false);
  }

  #sendRequest(encoder: RequestEncoder): void {
    const { info, isUpgrade } = this.#stream;
    if (this.#request.isComplete) info.lastUpstreamTxMs = this.#tries.current.startMs;
    const isUnderWay = this.#request.sendTo(encoder, this.#tries.current, isUpgrade);
    if (!this.#mayRepeat) this.#request.dropBody();
    if (isUnderWay) this.#stream.resumeRequest(Pause.NoConnection);
  }

  /** Called when a try ended without a response head. */
  #failed(current: UpstreamTry, failure: Failure): void {
    if (logger.isDebug) this.#log(`no response: ${failure.reason}`);
    if (this.#isRetried(current, failure.retry)) return this.#backOff();
    const answer = noResponse(failure, this.#tries.attempts > 1);
    if (!this.#hasOther(current))
      return this.#answer(answer, failure.retry === RetryReset.Overflow ? setOverloaded : undefined);
    this.#counts.answered(this.#cluster, answer.status, current.host);
    this.#awaitOthers(current);
  }

  #isRetried({ isRetried, isSent }: UpstreamTry, kind: RetryReset): boolean {
    return !isRetried && this.#retries.grantForFailure(kind, this.#cluster, isSent);
  }

  #backOff(): void {
    if (!this.#request.isComplete) this.#stream.pauseRequest(Pause.NoConnection, false);
    const delayMs = this.#retries.backoffMs(this.#thread.random.fraction());
    if (logger.isDebug) this.#log(`tries again in ${Math.round(delayMs)} ms`);
    this.#tries.current.backOff(delayMs);
  }

  nextTry(): void {
    this.#guard(() => this.#retry());
  }

  /**
   * Runs `act`; an exception ends the client's connection. An exception in an event handler normally ends the connection of that
   * event. A timer has none, and at the end of a try the event's connection is the host's, which is still in use by the pool.
   */
  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#stream.fault(error);
    }
  }

  /** Begins a retry. The cluster may have been replaced, with other hosts, or removed. */
  #retry(): void {
    this.#stream.info.attemptCount++;
    const cluster = this.#route.cluster!.current;
    if (cluster === undefined) return this.#answerWithoutHost();
    this.#cluster = cluster;
    const { host } = this.#tries.current;
    if (host !== undefined) this.#retries.addPreviousHost(host);
    if (!this.#options.suppressEnvoyHeaders || this.#timeouts.isGrpc) {
      const elapsedMs = this.#request.isComplete ? this.#thread.clock.monotonicMs - this.#requestEndMs : 0;
      this.#announceTimeout(this.#request.headers, Math.floor(elapsedMs));
    }
    this.#start();
  }

  /** Discards the response of this try. The connection returns to the pool if nothing more is expected on it. */
  #abandonTry(isResponseComplete: boolean): void {
    const now = this.#thread.clock.monotonicMs;
    if (isResponseComplete) this.#tries.current.span?.completed(now);
    this.#tries.current.span?.abandoned(0, now);
    if (isResponseComplete && this.#request.isComplete) this.#tries.current.end();
    else this.#tries.current.abort();
  }

  // ── Local replies ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Answers for the runtime key upstream.maintenance_mode.<cluster>. The request is still unchanged. */
  #refuseForMaintenance(): void {
    const cluster = this.#cluster;
    const { info } = this.#stream;
    this.#tries.reset(NO_TIMEOUTS, 0);
    info.upstreamCluster = cluster.spec;
    cluster.stats.increment(ClusterStats.at.upstream_rq_maintenance_mode);
    this.#answer(MAINTENANCE, setOverloaded);
  }

  /** Answers for drop_overloads of the load assignment. The request is still unchanged. */
  #refuseAsDropped(isEach: boolean): void {
    this.#tries.reset(NO_TIMEOUTS, 0);
    this.#stream.info.upstreamCluster = this.#cluster.spec;
    this.#answer(isEach ? ALL_DROPPED : DROPPED, isEach ? setAllDropped : setDropped);
  }

  /** Called when no host is available, for the first try or a retry. */
  #answerWithoutHost(details?: string): void {
    this.#tries.current.host = undefined;
    const status = this.#retries.hasStrictHost ? this.#stream.info.strictStatus : NO_HEALTHY_HOST.status;
    const isUsual = details === undefined && status === NO_HEALTHY_HOST.status;
    this.#answer(
      isUsual ? NO_HEALTHY_HOST : { ...NO_HEALTHY_HOST, status, details: details ?? NO_HEALTHY_HOST.details },
    );
  }

  /**
   * Answers instead of a host. The answer counts as a response of the cluster, and of the host of the last try if there was one.
   */
  #answer({ status, body, details, flags }: LocalReply, mark?: (headers: HeaderBlock) => void, isCounted = true): void {
    this.#stream.sendLocalReply({
      status,
      body,
      details,
      flags,
      editHeaders: (headers) => {
        if (!this.#options.suppressEnvoyHeaders) mark?.(headers);
        if (isCounted) this.#counts.answered(this.#cluster, status, this.#tries.current.host);
        const { attemptCount } = this.#stream.info;
        if (attemptCount > 0 && this.#route.includesAttemptCountInResponse) setAttemptCount(headers, attemptCount);
      },
    });
  }

  #log(text: string): void {
    logger.debug(`[C${this.#stream.info.connectionId}] ${text}`);
  }
}
