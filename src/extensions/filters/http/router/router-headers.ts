// The header fields that the router adds. Fields of every request are written as bytes, without strings.

import { type HeaderKey, headerKey } from '../../../../common/text/header-names.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import { HeaderLine } from '../../../../http/headers/header-line.js';

const SERVICE_TIME = headerKey('x-envoy-upstream-service-time');
const EXPECTED_TIMEOUT = headerKey('x-envoy-expected-rq-timeout-ms');
const ATTEMPT_COUNT = headerKey('x-envoy-attempt-count');
const OVERLOADED = headerKey('x-envoy-overloaded');
const DROPPED = headerKey('x-envoy-drop-overload');
const ALL_DROPPED = headerKey('x-envoy-unconditional-drop-overload');

/** Sets the time from the end of the request to the response, all tries included, in whole ms. */
export function setServiceTime(headers: HeaderBlock, milliseconds: number): void {
  headers.removeId(SERVICE_TIME.id);
  serviceTimes.line(milliseconds).addTo(headers);
}

/** Sets the timeout of the try in whole ms. 0, unlimited, is not sent. */
export function setExpectedTimeout(headers: HeaderBlock, milliseconds: number): void {
  if (milliseconds === 0) return;
  headers.removeId(EXPECTED_TIMEOUT.id);
  expectedTimeouts.line(milliseconds).addTo(headers);
}

/** Sets the number of the try; the first is 1. */
export function setAttemptCount(headers: HeaderBlock, attempt: number): void {
  headers.removeId(ATTEMPT_COUNT.id);
  attemptCounts.line(attempt).addTo(headers);
}

/** Marks the answer to a request that a circuit breaker refused: the client should back off. */
export function setOverloaded(headers: HeaderBlock): void {
  headers.set(OVERLOADED, 'true');
}

/** Marks the answer to a request that was dropped as the load assignment demands. */
export function setDropped(headers: HeaderBlock): void {
  headers.set(DROPPED, 'true');
}

/** The same where the load assignment demands to drop all requests. */
export function setAllDropped(headers: HeaderBlock): void {
  headers.set(ALL_DROPPED, 'true');
}

/** Cached lines of one field with an integer value: few values are frequent. */
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
