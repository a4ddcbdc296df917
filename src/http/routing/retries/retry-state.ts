// The retries of one request: the conditions of its policy and its x-envoy-* headers, and the number of retries left.

import { HeaderSet, headerKey, knownHeader } from '../../../common/text/header-names.js';
import { parseRetryOn, RetryOn } from '../../../config/fields/retry-on.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { isServerError } from '../../headers/status-class.js';
import { matchesAny } from '../matching/header-rule.js';
import { NO_RETRIES, type RetryPolicy } from './retry-policy.js';

/** How a try ended without a complete response head. */
export const enum RetryReset {
  /** No connection was available: refused, unreachable, timed out. The request has not been sent. */
  ConnectFailure = 1,
  /** The upstream host closed or reset the connection or the stream. */
  Reset = 2,
  /** The upstream host refused the stream unprocessed (HTTP/2 REFUSED_STREAM). */
  RefusedStream = 3,
  /** Baton ended the try: per_try_timeout, or an invalid response. */
  Local = 4,
  /** A circuit breaker is open: never retried. */
  Overflow = 5,
}

export const enum RetryDecision {
  No = 0,
  /** Retry after backoffMs(), if the circuit breaker for retries allows it. */
  Retry = 1,
  /** The conditions match, but no retry is left. */
  LimitExceeded = 2,
}

/** There is one for each stream object; begin() resets it for the next request. It allocates nothing unless request headers require it. */
export class RetryState {
  protected policy: RetryPolicy = NO_RETRIES;
  #conditions = 0;
  #remaining = 0;
  /** Back-off interval before the next try; 0: the policy's base interval. */
  #intervalMs = 0;
  /** Delay that the last response requests instead; 0: none. */
  #resetMs = 0;
  #extraStatusCodes: number[] = NO_CODES;
  #extraHeaders: readonly string[] = NO_NAMES;

  /**
   * Starts with a request's policy and its retry headers, and removes these headers. They have already been removed from external requests
   * at the edge. Without headers: a request that Baton itself makes.
   */
  begin(policy: RetryPolicy | undefined, headers: HeaderBlock | undefined): void {
    const effective = policy ?? NO_RETRIES;
    this.policy = effective;
    this.#conditions = effective.conditions;
    this.#remaining = effective.maxRetries;
    this.#intervalMs = 0;
    this.#resetMs = 0;
    this.#extraStatusCodes = NO_CODES;
    this.#extraHeaders = NO_NAMES;
    if (headers === undefined) return;
    if (headers.mayHaveOneOf(ANY_CONSUMED)) this.#readRequest(headers);
    if (effective.requestHeaders !== undefined && !matchesAny(effective.requestHeaders, headers)) this.#conditions = 0;
  }

  /** Whether a retry is possible: only then must the request be buffered. */
  get isEnabled(): boolean {
    return this.#conditions !== 0 && this.#remaining > 0;
  }

  /** Whether responses must be checked, if only to count one for which no retry is left. */
  get hasConditions(): boolean {
    return this.#conditions !== 0;
  }

  /** Prevents further retries, because the request can no longer be replayed. */
  disable(): void {
    this.#conditions = 0;
  }

  /**
   * Called when a response head arrives.
   * @param nowMs since 1970
   */
  onHeaders(status: number, headers: HeaderBlock, nowMs: number): RetryDecision {
    if (!this.#matchesResponse(status, headers)) return RetryDecision.No;
    this.#resetMs = this.policy.reset?.waitMs(headers, nowMs) ?? 0;
    return this.#takeOne();
  }

  /** Called when a try has timed out and goes on beside the next one (hedging). As in Envoy, the conditions do not matter if there are any. */
  onSlowness(): RetryDecision {
    if (this.#conditions === 0) return RetryDecision.No;
    this.#resetMs = 0;
    return this.#takeOne();
  }

  /** Returns whether a response is one that is retried, were a retry left. */
  isRetriable(headers: HeaderBlock): boolean {
    return this.#conditions !== 0 && this.#matchesResponse(headers.status, headers);
  }

  /** The next try waits for the delay that the last response requests. */
  get waitsForReset(): boolean {
    return this.#resetMs > 0;
  }

  /** Called when the try ends before a response head. `requestStarted`: a byte of the request has been sent. */
  onReset(kind: RetryReset, requestStarted: boolean): RetryDecision {
    return this.#matchesReset(kind, requestStarted) ? this.#takeOne() : RetryDecision.No;
  }

  /**
   * Returns the delay before the next try in milliseconds: fully jittered over an interval that doubles each time, or the delay that the
   * last response requests plus up to half of it.
   * @param random [0, 1)
   */
  backoffMs(random: number): number {
    const resetMs = this.#resetMs;
    if (resetMs > 0) {
      this.#resetMs = 0;
      return resetMs + Math.floor((random * resetMs) / 2);
    }
    const { baseIntervalMs, maxIntervalMs } = this.policy;
    const interval = this.#intervalMs || baseIntervalMs;
    this.#intervalMs = Math.min(interval * 2, maxIntervalMs);
    return Math.floor(random * interval);
  }

  #takeOne(): RetryDecision {
    if (this.#remaining === 0) return RetryDecision.LimitExceeded;
    this.#remaining--;
    return RetryDecision.Retry;
  }

  #matchesResponse(status: number, headers: HeaderBlock): boolean {
    const on = this.#conditions;
    if (headers.findId(RATE_LIMITED) >= 0) return (on & RetryOn.EnvoyRateLimited) !== 0;
    if ((on & RetryOn.ServerError) !== 0 && isServerError(status)) return true;
    if ((on & RetryOn.GatewayError) !== 0 && status >= 502 && status <= 504) return true;
    if ((on & RetryOn.Retriable4xx) !== 0 && status === 409) return true;
    if ((on & RetryOn.RetriableStatusCodes) !== 0 && this.#hasRetriableStatus(status)) return true;
    if ((on & RetryOn.RetriableHeaders) !== 0 && this.#hasRetriableHeader(headers)) return true;
    return (on & ANY_GRPC) !== 0 && (on & grpcCondition(headers)) !== 0;
  }

  #matchesReset(kind: RetryReset, requestStarted: boolean): boolean {
    const on = this.#conditions;
    if (kind === RetryReset.Overflow) return false;
    if (kind === RetryReset.ConnectFailure && (on & RetryOn.ConnectFailure) !== 0) return true;
    if (!requestStarted && (on & RetryOn.ResetBeforeRequest) !== 0) return true;
    // The client would get a 503 for a reset, so conditions for 5xx include it.
    if ((on & (RetryOn.Reset | RetryOn.ServerError | RetryOn.GatewayError)) !== 0) return true;
    return kind === RetryReset.RefusedStream && (on & RetryOn.RefusedStream) !== 0;
  }

  #hasRetriableStatus(status: number): boolean {
    return this.policy.statusCodes.includes(status) || this.#extraStatusCodes.includes(status);
  }

  #hasRetriableHeader(headers: HeaderBlock): boolean {
    const rules = this.policy.headers;
    if (rules !== undefined && matchesAny(rules, headers)) return true;
    return this.#extraHeaders.some((name) => headers.find(headerKey(name)) >= 0);
  }

  #readRequest(headers: HeaderBlock): void {
    for (const key of [RETRY_ON, RETRY_GRPC_ON]) {
      const text = headers.get(key);
      if (text !== undefined) this.#conditions |= parseRetryOn(text).conditions;
    }
    const maxRetries = headers.get(MAX_RETRIES);
    if (this.#conditions !== 0 && maxRetries !== undefined && isCount(maxRetries)) this.#remaining = Number(maxRetries);
    this.#extraStatusCodes = listOf(headers.get(STATUS_CODES)).filter(isCount).map(Number);
    this.#extraHeaders = listOf(headers.get(HEADER_NAMES));
    for (const key of CONSUMED) headers.remove(key);
  }
}

// All are known headers, so the head's presence bits show whether any occurs.
const RETRY_ON = headerKey('x-envoy-retry-on');
const RETRY_GRPC_ON = headerKey('x-envoy-retry-grpc-on');
const MAX_RETRIES = headerKey('x-envoy-max-retries');
const STATUS_CODES = headerKey('x-envoy-retriable-status-codes');
const HEADER_NAMES = headerKey('x-envoy-retriable-header-names');
const CONSUMED = [RETRY_ON, RETRY_GRPC_ON, MAX_RETRIES, STATUS_CODES, HEADER_NAMES];
const ANY_CONSUMED = new HeaderSet(CONSUMED);

const RATE_LIMITED = knownHeader('x-envoy-ratelimited');
const GRPC_STATUS = headerKey('grpc-status');
const NO_CODES: number[] = [];
const NO_NAMES: readonly string[] = [];

const ANY_GRPC =
  RetryOn.GrpcCancelled |
  RetryOn.GrpcDeadlineExceeded |
  RetryOn.GrpcResourceExhausted |
  RetryOn.GrpcUnavailable |
  RetryOn.GrpcInternal;

/** Indexed by the text of a grpc-status. */
const GRPC_CONDITIONS: ReadonlyMap<string, RetryOn> = new Map([
  ['1', RetryOn.GrpcCancelled],
  ['4', RetryOn.GrpcDeadlineExceeded],
  ['8', RetryOn.GrpcResourceExhausted],
  ['13', RetryOn.GrpcInternal],
  ['14', RetryOn.GrpcUnavailable],
]);

function grpcCondition(headers: HeaderBlock): number {
  const status = headers.get(GRPC_STATUS);
  return status === undefined ? 0 : (GRPC_CONDITIONS.get(status) ?? 0);
}

function listOf(text: string | undefined): string[] {
  if (text === undefined) return [];
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function isCount(text: string): boolean {
  return /^[0-9]{1,9}$/.test(text.trim());
}
