// How long a request and each of its tries may take: what its route says, or what the request itself asks for.

import { type HeaderKey, HeaderSet, headerKey } from '../../../../common/text/header-names.js';
import { isGrpcRequest } from '../../../../http/headers/grpc-reply.js';
import { grpcTimeoutMs } from '../../../../http/headers/grpc-timeout.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import type { GrpcTimeout, Route } from '../../../../http/routing/actions/route.js';
import type { ClusterSpec } from '../../../../upstream/cluster-config.js';

const UPSTREAM_TIMEOUT = headerKey('x-envoy-upstream-rq-timeout-ms');
const PER_TRY_TIMEOUT = headerKey('x-envoy-upstream-rq-per-try-timeout-ms');
const EXPECTED_TIMEOUT = headerKey('x-envoy-expected-rq-timeout-ms');
const STREAM_DURATION = headerKey('x-envoy-upstream-stream-duration-ms');
const ALT_RESPONSE = headerKey('x-envoy-upstream-rq-timeout-alt-response');
/** They speak to the router as well, of what it has not: hedging, and statistics by another name. */
const UNUSED = ['x-envoy-hedge-on-per-try-timeout', 'x-envoy-upstream-alt-stat-name'];
const UNUSED_KEYS = UNUSED.map(headerKey);
const WISHES = new HeaderSet([UPSTREAM_TIMEOUT, PER_TRY_TIMEOUT, STREAM_DURATION, ALT_RESPONSE, ...UNUSED_KEYS]);

export interface RequestTimeouts {
  /** Whole request; 0: none. */
  timeoutMs: number;
  /** One try; 0: as long as the whole request. */
  perTryMs: number;
  /** One try from its first to its last byte, however much may move meanwhile; 0: for ever. */
  streamMs: number;
  /** Who waited too long is told by 204 and not by 504. */
  isAnsweredEmpty: boolean;
  /** The host of a gRPC call is told in grpc-timeout, too. */
  isOfGrpc: boolean;
}

/**
 * Sets those of a request that begins. The fields in which it asks for its own are not for the host: `headers` lose them.
 * @param respectsExpected what the proxy before this one expects of it counts before all else (Router.respect_expected_rq_timeout)
 */
export function setTimeouts(
  timeouts: RequestTimeouts,
  { grpcTimeout, retryPolicy, timeoutMs }: Route<unknown>,
  { maxStreamMs }: ClusterSpec,
  headers: HeaderBlock,
  respectsExpected: boolean,
): void {
  timeouts.timeoutMs = timeoutMs;
  timeouts.perTryMs = retryPolicy?.perTryTimeoutMs ?? 0;
  timeouts.streamMs = maxStreamMs;
  timeouts.isAnsweredEmpty = false;
  timeouts.isOfGrpc = grpcTimeout !== undefined && isGrpcRequest(headers);
  if (timeouts.isOfGrpc) timeouts.timeoutMs = grantedMs(grpcTimeout!, grpcTimeoutMs(headers) ?? 0);
  if (headers.mayHaveOneOf(WISHES)) takeWishes(headers, timeouts);
  if (respectsExpected) {
    const expected = numberOf(headers, EXPECTED_TIMEOUT);
    if (expected >= 0) timeouts.timeoutMs = expected;
  }
  // The time of the whole request ends such a try.
  if (timeouts.timeoutMs > 0 && timeouts.perTryMs >= timeouts.timeoutMs) timeouts.perTryMs = 0;
}

/** What a try that begins `elapsedMs` after the end of the request may take; 0: for ever. */
export function expectedTimeoutMs({ timeoutMs, perTryMs }: RequestTimeouts, elapsedMs: number): number {
  const ofTry = perTryMs > 0 ? perTryMs : timeoutMs;
  if (timeoutMs === 0) return ofTry;
  // 0 would be for ever.
  return Math.max(1, Math.min(ofTry, timeoutMs - elapsedMs));
}

/** What a gRPC call may take whose client waits for `asked`; 0: for ever. */
function grantedMs({ maxMs, offsetMs }: GrpcTimeout, asked: number): number {
  const ms = offsetMs < asked ? asked - offsetMs : asked;
  if (maxMs === 0) return ms;
  return ms === 0 ? maxMs : Math.min(ms, maxMs);
}

function takeWishes(headers: HeaderBlock, timeouts: RequestTimeouts): void {
  const whole = takeNumber(headers, UPSTREAM_TIMEOUT);
  if (whole >= 0) timeouts.timeoutMs = whole;
  const perTry = takeNumber(headers, PER_TRY_TIMEOUT);
  if (perTry >= 0) timeouts.perTryMs = perTry;
  const stream = takeNumber(headers, STREAM_DURATION);
  if (stream >= 0) timeouts.streamMs = stream;
  timeouts.isAnsweredEmpty = headers.remove(ALT_RESPONSE);
  for (const key of UNUSED_KEYS) headers.remove(key);
}

function takeNumber(headers: HeaderBlock, key: HeaderKey): number {
  const number = numberOf(headers, key);
  headers.removeId(key.id);
  return number;
}

/** -1: there is none. */
function numberOf(headers: HeaderBlock, key: HeaderKey): number {
  const text = headers.get(key);
  return text !== undefined && /^[0-9]{1,9}$/.test(text) ? Number(text) : -1;
}
