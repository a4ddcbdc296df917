// One request to a token endpoint, with its retries.

import {
  CallFailure,
  type CallingThread,
  type Clock,
  type Cluster,
  ClusterStats,
  type HeaderBlock,
  HttpCall,
  type HttpCallAnswer,
  type HttpCallEvents,
  type HttpCallRequest,
  headerKey,
  LimitKind,
  Method,
  messageOf,
  Priority,
  type Random,
  RetryDecision,
  type RetryPolicy,
  RetryReset,
  RetryState,
  Timer,
  type Timers,
} from '../../../sdk.js';

/** A token endpoint. */
export interface TokenEndpoint {
  readonly cluster: string;
  readonly host: string;
  readonly path: string;
  readonly timeoutMs: number;
  /** Undefined: requests are not retried. */
  readonly retries: RetryPolicy | undefined;
}

/** The parts of a worker that calls use. */
export interface CallContext {
  readonly calls: CallingThread;
  readonly clock: Clock;
  readonly random: Random;
  readonly timers: Timers;
}

/** Called once for each call that is not cancelled. */
export interface TokenCallEvents {
  /** `failure`: why the endpoint has sent no response; `status` is 503 or 504 then, and the body is empty. */
  onTokenAnswer(status: number, body: Buffer, failure?: string): void;
}

const OK = 200;
const UNAVAILABLE = 503;
const GATEWAY_TIMEOUT = 504;

export class TokenCall implements HttpCallRequest, HttpCallEvents {
  readonly body: readonly Uint8Array[];
  readonly #endpoint: TokenEndpoint;
  readonly #context: CallContext;
  readonly #authorization: string | undefined;
  readonly #events: TokenCallEvents;
  readonly #endsMs: number;
  readonly #retry = new RetryState();
  readonly #timer = new Timer<TokenCall>(this, (call) => call.#send());
  #call: HttpCall | undefined;
  #isUnderWay = false;
  #isOver = false;
  #decision = RetryDecision.No;
  /** The cluster whose retry circuit breaker counts this request. */
  #holder: Cluster | undefined;

  /**
   * Sends the form. The event may be called before this returns.
   * @param authorization value of the field; undefined: none is sent
   */
  constructor(
    endpoint: TokenEndpoint,
    context: CallContext,
    request: { readonly form: string; readonly authorization: string | undefined },
    events: TokenCallEvents,
  ) {
    this.#endpoint = endpoint;
    this.#context = context;
    this.#authorization = request.authorization;
    this.#events = events;
    this.body = [Buffer.from(request.form, 'latin1')];
    this.#endsMs = context.clock.monotonicMs + endpoint.timeoutMs;
    this.#retry.begin(endpoint.retries, undefined);
    this.#send();
  }

  /** The event has been called, or the call was cancelled. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The remaining part of the timeout of all tries. */
  get timeoutMs(): number {
    return Math.max(1, this.#endsMs - this.#context.clock.monotonicMs);
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#end();
    this.#call?.cancel();
  }

  writeHead(head: HeaderBlock): void {
    head.setMethod(Method.Post, 'POST');
    head.setPath(this.#endpoint.path);
    head.add(HOST, this.#endpoint.host);
    head.add(CONTENT_TYPE, 'application/x-www-form-urlencoded');
    head.add(ACCEPT, 'application/json');
    if (this.#authorization !== undefined) head.add(AUTHORIZATION, this.#authorization);
  }

  onHead(headers: HeaderBlock): void {
    this.#decision = this.#retry.hasConditions
      ? this.#retry.onHeaders(headers.status, headers, this.#context.clock.realtimeMs)
      : RetryDecision.No;
  }

  onAnswer({ body, status }: HttpCallAnswer): void {
    this.#isUnderWay = false;
    const decision = this.#decision;
    this.#decision = RetryDecision.No;
    if (this.#willRetry(decision)) return;
    if (status === OK && this.#holder !== undefined) this.#count(ClusterStats.at.upstream_rq_retry_success);
    this.#end();
    this.#events.onTokenAnswer(status, body);
  }

  onFailure(reason: string, failure?: CallFailure): void {
    this.#isUnderWay = false;
    this.#decision = RetryDecision.No;
    if (failure !== undefined && failure !== CallFailure.Timeout && this.#willRetry(this.#afterFailure(failure)))
      return;
    this.#end();
    const status = failure === CallFailure.Timeout ? GATEWAY_TIMEOUT : UNAVAILABLE;
    this.#events.onTokenAnswer(status, NONE, reason);
  }

  #afterFailure(failure: CallFailure): RetryDecision {
    switch (failure) {
      case CallFailure.NoConnection:
        return this.#retry.onReset(RetryReset.ConnectFailure, false);
      case CallFailure.Refused:
        return this.#retry.onReset(RetryReset.RefusedStream, false);
      default:
        return this.#retry.onReset(RetryReset.Reset, true);
    }
  }

  #willRetry(decision: RetryDecision): boolean {
    const cluster = this.#cluster;
    if (decision === RetryDecision.LimitExceeded) this.#count(ClusterStats.at.upstream_rq_retry_limit_exceeded);
    if (decision !== RetryDecision.Retry || cluster === undefined) return false;
    if (this.#holder === undefined && !cluster.limits.tryAcquireRetry(Priority.Default)) {
      this.#count(ClusterStats.at.upstream_rq_retry_overflow);
      return false;
    }
    this.#holder ??= cluster;
    this.#count(ClusterStats.at.upstream_rq_retry);
    this.#count(ClusterStats.at.upstream_rq_retry_backoff_exponential);
    const waitMs = this.#retry.backoffMs(this.#context.random.nextUint32() / 2 ** 32);
    this.#context.timers.reschedule(this.#timer, Math.max(1, Math.min(waitMs, this.timeoutMs)));
    return true;
  }

  #count(at: (typeof ClusterStats.at)['upstream_rq_retry']): void {
    this.#cluster?.stats.increment(at);
  }

  get #cluster(): Cluster | undefined {
    return this.#context.calls.reference(this.#endpoint.cluster).current;
  }

  #send(): void {
    // The pause before the retry has used up the timeout.
    if (this.#context.clock.monotonicMs >= this.#endsMs) return this.onFailure(NOT_IN_TIME, CallFailure.Timeout);
    this.#isUnderWay = true;
    try {
      const call = HttpCall.start(this.#context.calls, this.#cluster, this, this);
      // It may have ended already.
      if (this.#isUnderWay) this.#call = call;
    } catch (error) {
      // The call has ended without an event.
      this.onFailure(messageOf(error));
    }
  }

  #end(): void {
    this.#isOver = true;
    this.#context.timers.cancel(this.#timer);
    this.#holder?.limits.release(LimitKind.Retries, Priority.Default);
    this.#holder = undefined;
  }
}

const NONE = Buffer.alloc(0);
const NOT_IN_TIME = 'it does not answer in time';
const HOST = headerKey('host');
const CONTENT_TYPE = headerKey('content-type');
const ACCEPT = headerKey('accept');
const AUTHORIZATION = headerKey('authorization');
