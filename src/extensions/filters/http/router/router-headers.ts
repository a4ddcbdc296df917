// The header fields that the router writes itself, in bytes and without strings where every request has them.

import { type HeaderKey, HeaderSet, headerKey } from '../../../../common/header-names.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import { HeaderLine } from '../../../../http/headers/header-line.js';

const SERVICE_TIME = headerKey('x-envoy-upstream-service-time');
const EXPECTED_TIMEOUT = headerKey('x-envoy-expected-rq-timeout-ms');
const ATTEMPT_COUNT = headerKey('x-envoy-attempt-count');
const OVERLOADED = headerKey('x-envoy-overloaded');
const UPSTREAM_TIMEOUT = headerKey('x-envoy-upstream-rq-timeout-ms');
const PER_TRY_TIMEOUT = headerKey('x-envoy-upstream-rq-per-try-timeout-ms');
const ALT_RESPONSE = headerKey('x-envoy-upstream-rq-timeout-alt-response');
/** They speak to the router as well, of what it has not: longest streams, hedging, and statistics by another name. */
const UNUSED = [
  'x-envoy-upstream-stream-duration-ms',
  'x-envoy-hedge-on-per-try-timeout',
  'x-envoy-upstream-alt-stat-name',
];
const UNUSED_KEYS = UNUSED.map(headerKey);
const WISHES = new HeaderSet([UPSTREAM_TIMEOUT, PER_TRY_TIMEOUT, ALT_RESPONSE, ...UNUSED_KEYS]);

/** How long the response has taken from the end of the request, with all tries, in whole milliseconds. */
export function setServiceTime(headers: HeaderBlock, milliseconds: number): void {
  headers.removeId(SERVICE_TIME.id);
  serviceTimes.line(milliseconds).addTo(headers);
}

/** How long the host has for a try that begins `elapsedMs` after the end of the request, if it does not have for ever. */
export function setExpectedTimeout(headers: HeaderBlock, timeouts: RequestTimeouts, elapsedMs: number): void {
  const milliseconds = expectedTimeout(timeouts, elapsedMs);
  if (milliseconds === 0) return;
  headers.removeId(EXPECTED_TIMEOUT.id);
  expectedTimeouts.line(milliseconds).addTo(headers);
}

function expectedTimeout({ timeoutMs, perTryMs }: RequestTimeouts, elapsedMs: number): number {
  const ofTry = perTryMs > 0 ? perTryMs : timeoutMs;
  if (timeoutMs === 0) return ofTry;
  // 0 would be for ever.
  return Math.max(1, Math.min(ofTry, timeoutMs - elapsedMs));
}

/** Which try this is, the first being 1. */
export function setAttemptCount(headers: HeaderBlock, attempt: number): void {
  headers.removeId(ATTEMPT_COUNT.id);
  attemptCounts.line(attempt).addTo(headers);
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
  /** Who waited too long is told by 204 and not by 504. */
  isAnsweredEmpty: boolean;
}

/** What the request itself asks of its timeouts replaces what its route says; the fields are not for the host. */
export function takeRequestedTimeouts(headers: HeaderBlock, timeouts: RequestTimeouts): void {
  if (!headers.mayHaveOneOf(WISHES)) return;
  const whole = takeNumber(headers, UPSTREAM_TIMEOUT.id);
  if (whole >= 0) timeouts.timeoutMs = whole;
  const perTry = takeNumber(headers, PER_TRY_TIMEOUT.id);
  if (perTry >= 0) timeouts.perTryMs = perTry;
  timeouts.isAnsweredEmpty = headers.remove(ALT_RESPONSE);
  for (const key of UNUSED_KEYS) headers.remove(key);
}

/** Whether a response tells that its host is overloaded: such a failure is not tried again. */
export function saysOverloaded(headers: HeaderBlock): boolean {
  return headers.findId(OVERLOADED.id) >= 0;
}

/** Lines of one field with a whole number, each made when it is first needed: the same few come again and again. */
class NumberLines {
  readonly #key: HeaderKey;
  readonly #small: (HeaderLine | undefined)[] = [];
  #last: HeaderLine | undefined;
  #lastValue = -1;

  constructor(key: HeaderKey) {
    this.#key = key;
  }

  line(value: number): HeaderLine {
    if (value < SMALL_NUMBERS) return (this.#small[value] ??= new HeaderLine(this.#key, String(value)));
    if (this.#last === undefined || value !== this.#lastValue) {
      this.#last = new HeaderLine(this.#key, String(value));
      this.#lastValue = value;
    }
    return this.#last;
  }
}

const SMALL_NUMBERS = 256;
const serviceTimes = new NumberLines(SERVICE_TIME);
const expectedTimeouts = new NumberLines(EXPECTED_TIMEOUT);
const attemptCounts = new NumberLines(ATTEMPT_COUNT);

function takeNumber(headers: HeaderBlock, id: number): number {
  const index = headers.findId(id);
  if (index < 0) return -1;
  const text = headers.value(index);
  headers.removeId(id);
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : -1;
}
