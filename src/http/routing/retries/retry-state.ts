// The retries of one request: what the policy and the request's own x-envoy-* headers allow, and what is left of it.

import { HeaderSet, headerKey, knownHeader } from '../../../common/text/header-names.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { matchesAny } from '../matching/header-rule.js';
import { NO_RETRIES, parseRetryOn, RetryOn, type RetryPolicy } from './retry-policy.js';

/** How a try ended without a whole response head. */
export const enum RetryReset {
  /** No connection could be had: refused, unreachable, timed out. The request has not been sent. */
  ConnectFailure = 1,
  /** The upstream closed or reset the connection or the stream. */
  Reset = 2,
  /** The upstream refused the stream without looking at it (HTTP/2 REFUSED_STREAM). */
  RefusedStream = 3,
  /** Given up here: per_try_timeout, or something the upstream sent is invalid. */
  Local = 4,
  /** A circuit breaker is open: never tried again. */
  Overflow = 5,
}

export const enum RetryDecision {
  No = 0,
  /** Try again after backoffMs(), if the retry circuit breaker agrees. */
  Retry = 1,
  /** It would be tried again, but no retry is left. */
  LimitExceeded = 2,
}

/** One a stream; begin() makes it ready for the next request, and nothing is allocated as long as no header asks for it. */
export class RetryState {
  protected policy: RetryPolicy = NO_RETRIES;
  #conditions = 0;
  #remaining = 0;
  /** Before the next try; 0: the policy's first. */
  #intervalMs = 0;
  /** What the response that is tried again asks for instead; 0: nothing. */
  #resetMs = 0;
  #extraStatusCodes: number[] = NO_CODES;
  #extraHeaders: readonly string[] = NO_NAMES;

  /**
   * Starts with a request's policy and headers. The headers are consumed: they are not for the upstream. External requests
   * have lost theirs at the edge.
   */
  begin(policy: RetryPolicy | undefined, headers: HeaderBlock): void {
    const effective = policy ?? NO_RETRIES;
    this.policy = effective;
    this.#conditions = effective.conditions;
    this.#remaining = effective.maxRetries;
    this.#intervalMs = 0;
    this.#resetMs = 0;
    this.#extraStatusCodes = NO_CODES;
    this.#extraHeaders = NO_NAMES;
    if (headers.mayHaveOneOf(ANY_CONSUMED)) this.#readRequest(headers);
    if (effective.requestHeaders !== undefined && !matchesAny(effective.requestHeaders, headers)) this.#conditions = 0;
  }

  /** Whether anything could be tried again: only then must the request be kept. */
  get isEnabled(): boolean {
    return this.#conditions !== 0 && this.#remaining > 0;
  }

  /** Whether responses are looked at, be it to count one that no retry is left for. */
  get hasConditions(): boolean {
    return this.#conditions !== 0;
  }

  /** Nothing is tried again from here on: the request can no longer be sent a second time. */
  disable(): void {
    this.#conditions = 0;
  }

  /**
   * A response head has come.
   * @param nowMs since 1970
   */
  onHeaders(status: number, headers: HeaderBlock, nowMs: number): RetryDecision {
    if (!this.#wantsRetryOf(status, headers)) return RetryDecision.No;
    this.#resetMs = this.policy.reset?.waitMs(headers, nowMs) ?? 0;
    return this.#takeOne();
  }

  /** The next try waits as long as the last response asks for. */
  get waitsForReset(): boolean {
    return this.#resetMs > 0;
  }

  /** The try ended before a response head. `requestStarted`: a byte of the request has been sent. */
  onReset(kind: RetryReset, requestStarted: boolean): RetryDecision {
    return this.#wantsRetryAfter(kind, requestStarted) ? this.#takeOne() : RetryDecision.No;
  }

  /**
   * How long to wait before the next try, in milliseconds: fully jittered, from an interval that doubles each time; or what the
   * last response asks for, and up to half of that more.
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

  #wantsRetryOf(status: number, headers: HeaderBlock): boolean {
    const on = this.#conditions;
    if (headers.findId(RATE_LIMITED) >= 0) return (on & RetryOn.EnvoyRateLimited) !== 0;
    if ((on & RetryOn.ServerError) !== 0 && status >= 500 && status <= 599) return true;
    if ((on & RetryOn.GatewayError) !== 0 && status >= 502 && status <= 504) return true;
    if ((on & RetryOn.Retriable4xx) !== 0 && status === 409) return true;
    if ((on & RetryOn.RetriableStatusCodes) !== 0 && this.#isRetriable(status)) return true;
    if ((on & RetryOn.RetriableHeaders) !== 0 && this.#hasRetriableHeader(headers)) return true;
    return (on & ANY_GRPC) !== 0 && (on & grpcCondition(headers)) !== 0;
  }

  #wantsRetryAfter(kind: RetryReset, requestStarted: boolean): boolean {
    const on = this.#conditions;
    if (kind === RetryReset.Overflow) return false;
    if (kind === RetryReset.ConnectFailure && (on & RetryOn.ConnectFailure) !== 0) return true;
    if (!requestStarted && (on & RetryOn.ResetBeforeRequest) !== 0) return true;
    // A reset becomes a 503 for the client: those who retry 5xx mean it too.
    if ((on & (RetryOn.Reset | RetryOn.ServerError | RetryOn.GatewayError)) !== 0) return true;
    return kind === RetryReset.RefusedStream && (on & RetryOn.RefusedStream) !== 0;
  }

  #isRetriable(status: number): boolean {
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

// All of them are known names, so that the head's presence bits tell whether there is one.
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

/** By the text of a grpc-status. */
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
