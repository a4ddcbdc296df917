// The timeouts of a request and of each try, from the route or from request headers.

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
const HEDGES = headerKey('x-envoy-hedge-on-per-try-timeout');
/** For a feature that is not implemented. It is removed. */
const ALT_STAT_NAME = headerKey('x-envoy-upstream-alt-stat-name');
const CONTROL_FIELDS = new HeaderSet([
  UPSTREAM_TIMEOUT,
  PER_TRY_TIMEOUT,
  STREAM_DURATION,
  ALT_RESPONSE,
  HEDGES,
  ALT_STAT_NAME,
]);

export interface RequestTimeouts {
  /** The whole request; 0: unlimited. */
  timeoutMs: number;
  /** One try; 0: limited only by the whole request. */
  perTryMs: number;
  /** One try from its first to its last byte, regardless of progress; 0: unlimited. */
  streamMs: number;
  /** A try that times out goes on beside the next one. */
  hedges: boolean;
  /** A timeout is answered with 204 instead of 504. */
  isTimeoutEmpty: boolean;
  /** A gRPC call: the host also gets the timeout in grpc-timeout. */
  isGrpc: boolean;
}

export const NO_TIMEOUTS: RequestTimeouts = {
  timeoutMs: 0,
  perTryMs: 0,
  streamMs: 0,
  hedges: false,
  isTimeoutEmpty: false,
  isGrpc: false,
};

/**
 * Sets the timeouts of a new request. Removes from `headers` the fields that set timeouts, which are not for the host.
 * @param respectsExpected x-envoy-expected-rq-timeout-ms of a preceding proxy overrides the other values
 * (Router.respect_expected_rq_timeout)
 */
export function setTimeouts(
  timeouts: RequestTimeouts,
  { grpcTimeout, hedges, retryPolicy, timeoutMs }: Route<unknown>,
  { maxStreamMs }: ClusterSpec,
  headers: HeaderBlock,
  respectsExpected: boolean,
): void {
  timeouts.timeoutMs = timeoutMs;
  timeouts.perTryMs = retryPolicy?.perTryTimeoutMs ?? 0;
  timeouts.streamMs = maxStreamMs;
  timeouts.hedges = hedges;
  timeouts.isTimeoutEmpty = false;
  timeouts.isGrpc = grpcTimeout !== undefined && isGrpcRequest(headers);
  if (timeouts.isGrpc) timeouts.timeoutMs = grpcRequestMs(grpcTimeout!, grpcTimeoutMs(headers) ?? 0);
  if (headers.mayHaveOneOf(CONTROL_FIELDS)) takeControlFields(headers, timeouts);
  if (respectsExpected) {
    const expected = numberOf(headers, EXPECTED_TIMEOUT);
    if (expected >= 0) timeouts.timeoutMs = expected;
  }
  // The timeout of the whole request ends such a try.
  if (timeouts.timeoutMs > 0 && timeouts.perTryMs >= timeouts.timeoutMs) timeouts.perTryMs = 0;
}

/** Returns the timeout of a try that begins `elapsedMs` after the end of the request; 0: unlimited. */
export function expectedTimeoutMs({ hedges, perTryMs, timeoutMs }: RequestTimeouts, elapsedMs: number): number {
  // A try that goes on may take as long as the request.
  const ofTry = perTryMs > 0 && !hedges ? perTryMs : timeoutMs;
  if (timeoutMs === 0) return ofTry;
  // 0 would mean unlimited.
  return Math.max(1, Math.min(ofTry, timeoutMs - elapsedMs));
}

/** Returns the timeout of a gRPC call whose client asked for `asked`; 0: unlimited. */
function grpcRequestMs({ maxMs, offsetMs }: GrpcTimeout, asked: number): number {
  const ms = offsetMs < asked ? asked - offsetMs : asked;
  if (maxMs === 0) return ms;
  return ms === 0 ? maxMs : Math.min(ms, maxMs);
}

function takeControlFields(headers: HeaderBlock, timeouts: RequestTimeouts): void {
  const whole = takeNumber(headers, UPSTREAM_TIMEOUT);
  if (whole >= 0) timeouts.timeoutMs = whole;
  const perTry = takeNumber(headers, PER_TRY_TIMEOUT);
  if (perTry >= 0) timeouts.perTryMs = perTry;
  const stream = takeNumber(headers, STREAM_DURATION);
  if (stream >= 0) timeouts.streamMs = stream;
  timeouts.isTimeoutEmpty = headers.remove(ALT_RESPONSE);
  const hedges = headers.get(HEDGES);
  if (hedges === 'true' || hedges === 'false') timeouts.hedges = hedges === 'true';
  headers.removeId(HEDGES.id);
  headers.removeId(ALT_STAT_NAME.id);
}

function takeNumber(headers: HeaderBlock, key: HeaderKey): number {
  const number = numberOf(headers, key);
  headers.removeId(key.id);
  return number;
}

/** Returns -1 if the field is absent or invalid. */
function numberOf(headers: HeaderBlock, key: HeaderKey): number {
  const text = headers.get(key);
  return text !== undefined && /^[0-9]{1,9}$/.test(text) ? Number(text) : -1;
}
