// runtime_filter: matches a share of the streams. Streams with the same x-request-id get the same result, on all hosts.

import { noHeaderNeeds } from '../../access-log/formats/format.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { Random } from '../../common/random.js';
import { headerKey } from '../../common/text/header-names.js';
import type { RuntimeFilter } from '../../config/generated/api.js';
import { DENOMINATORS, type RuntimeInteger } from '../../runtime/runtime.js';
import { type LogFilter, type LogFilterContext, NO_NEEDS } from './log-filter.js';

const REQUEST_ID = headerKey('x-request-id');
/** Number of hexadecimal digits at the beginning of the request ID that decide. */
const ID_DIGITS = 8;

export class SamplingFilter implements LogFilter {
  readonly needs;
  readonly #random: Random;
  /** Out of `#buckets`. Runtime replaces only the numerator, by an integer. */
  readonly #numerator: RuntimeInteger;
  readonly #buckets: number;
  readonly #isIndependent: boolean;

  constructor(config: RuntimeFilter, { random, runtime }: LogFilterContext) {
    const { numerator = 0, denominator = 'HUNDRED' } = config.percent_sampled ?? {};
    this.#random = random;
    this.#numerator = runtime.integer(config.runtime_key, numerator);
    this.#buckets = DENOMINATORS[denominator];
    this.#isIndependent = config.use_independent_randomness ?? false;
    this.needs = this.#isIndependent ? NO_NEEDS : { ...noHeaderNeeds(), request: new Set([REQUEST_ID.name]) };
  }

  matches(info: StreamInfo): boolean {
    const number = this.#isIndependent ? -1 : numberOf(info);
    const bucket = number < 0 ? this.#random.below(this.#buckets) : number % this.#buckets;
    return bucket < this.#numerator.value;
  }
}

/** Returns the number in the first hexadecimal digits of the request ID; -1 without such an ID. */
function numberOf({ requestHeaders: head }: StreamInfo): number {
  const index = head === undefined ? -1 : head.findValue(REQUEST_ID);
  if (index < 0) return -1;
  const start = head!.valueStart(index);
  if (head!.valueEnd(index) - start < ID_DIGITS) return -1;
  const { bytes } = head!.memory;
  let number = 0;
  for (let at = start; at < start + ID_DIGITS; at++) {
    const digit = digitOf(bytes[at]!);
    if (digit < 0) return -1;
    number = number * 16 + digit;
  }
  return number;
}

function digitOf(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}
