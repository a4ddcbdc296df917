// The header fields that the router writes itself, in bytes and without strings where every request has them.

import { type HeaderKey, headerKey } from '../../../../common/header-names.js';
import type { HeaderBlock } from '../../../../http/header-block.js';
import { beginLine, endLine } from '../../../../http/header-line.js';

const SERVICE_TIME = headerKey('x-envoy-upstream-service-time');
const EXPECTED_TIMEOUT = headerKey('x-envoy-expected-rq-timeout-ms');
const ATTEMPT_COUNT = headerKey('x-envoy-attempt-count');
const OVERLOADED = headerKey('x-envoy-overloaded');
const UPSTREAM_TIMEOUT = headerKey('x-envoy-upstream-rq-timeout-ms');
const PER_TRY_TIMEOUT = headerKey('x-envoy-upstream-rq-per-try-timeout-ms');

/** How long the host has taken, in whole milliseconds. */
export function setServiceTime(headers: HeaderBlock, milliseconds: number): void {
  headers.removeId(SERVICE_TIME.id);
  addNumber(headers, SERVICE_TIME, milliseconds);
}

/** How long the host has for this try. */
export function setExpectedTimeout(headers: HeaderBlock, milliseconds: number): void {
  headers.removeId(EXPECTED_TIMEOUT.id);
  addNumber(headers, EXPECTED_TIMEOUT, milliseconds);
}

/** Which try this is, the first being 1. */
export function setAttemptCount(headers: HeaderBlock, attempt: number): void {
  headers.removeId(ATTEMPT_COUNT.id);
  addNumber(headers, ATTEMPT_COUNT, attempt);
}

/** A circuit breaker refused the request: who sent it should hold back. */
export function setOverloaded(headers: HeaderBlock): void {
  headers.set(OVERLOADED, 'true');
}

export interface RequestTimeouts {
  /** Whole request; 0: none. */
  timeoutMs: number;
  /** One try; 0: as long as the whole request. */
  perTryMs: number;
}

/** Timeouts that the request itself asks for replace those of its route; the fields are not for the host. */
export function takeRequestedTimeouts(headers: HeaderBlock, timeouts: RequestTimeouts): void {
  const whole = takeNumber(headers, UPSTREAM_TIMEOUT.id);
  if (whole >= 0) timeouts.timeoutMs = whole;
  const perTry = takeNumber(headers, PER_TRY_TIMEOUT.id);
  if (perTry >= 0) timeouts.perTryMs = perTry;
}

/** Whether a response tells that its host is overloaded: such a failure is not tried again. */
export function saysOverloaded(headers: HeaderBlock): boolean {
  return headers.findId(OVERLOADED.id) >= 0;
}

/** Adds a whole number that is not negative. */
function addNumber(headers: HeaderBlock, key: HeaderKey, value: number): void {
  let digits = 1;
  for (let bound = 10; value >= bound; bound *= 10) digits++;
  const start = beginLine(headers, key, digits);
  const { bytes } = headers.memory;
  let rest = value;
  for (let at = start + digits - 1; at >= start; at--) {
    const next = Math.floor(rest / 10);
    bytes[at] = 48 + rest - next * 10;
    rest = next;
  }
  endLine(headers, key, start, start + digits);
}

function takeNumber(headers: HeaderBlock, id: number): number {
  const index = headers.findId(id);
  if (index < 0) return -1;
  const text = headers.value(index);
  headers.removeId(id);
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : -1;
}
