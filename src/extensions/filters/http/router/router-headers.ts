// The header fields that the router writes itself, in bytes and without strings where every request has them.

import { type HeaderKey, headerKey } from '../../../../common/text/header-names.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import { HeaderLine } from '../../../../http/headers/header-line.js';

const SERVICE_TIME = headerKey('x-envoy-upstream-service-time');
const EXPECTED_TIMEOUT = headerKey('x-envoy-expected-rq-timeout-ms');
const ATTEMPT_COUNT = headerKey('x-envoy-attempt-count');
const OVERLOADED = headerKey('x-envoy-overloaded');

/** How long the response has taken from the end of the request, with all tries, in whole milliseconds. */
export function setServiceTime(headers: HeaderBlock, milliseconds: number): void {
  headers.removeId(SERVICE_TIME.id);
  serviceTimes.line(milliseconds).addTo(headers);
}

/** How long the host has for the try that begins, in whole milliseconds; 0, for ever, is not told. */
export function setExpectedTimeout(headers: HeaderBlock, milliseconds: number): void {
  if (milliseconds === 0) return;
  headers.removeId(EXPECTED_TIMEOUT.id);
  expectedTimeouts.line(milliseconds).addTo(headers);
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
