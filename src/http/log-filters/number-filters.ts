// Filters that compare a number of a stream: status_code_filter and duration_filter. Runtime may override the bound.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { ComparisonFilter, ComparisonFilter_Op } from '../../config/generated/api.js';
import type { Runtime, RuntimeInteger } from '../../runtime/runtime.js';
import { type LogFilter, NO_NEEDS } from './log-filter.js';

abstract class NumberFilter implements LogFilter {
  readonly needs = NO_NEEDS;
  readonly #op: ComparisonFilter_Op;
  readonly #bound: RuntimeInteger;

  constructor({ op = 'EQ', value }: ComparisonFilter, runtime: Runtime) {
    this.#op = op;
    this.#bound = runtime.integer(value?.runtime_key, value?.default_value ?? 0);
  }

  abstract matches(info: StreamInfo): boolean;

  protected holds(value: number): boolean {
    const bound = this.#bound.value;
    switch (this.#op) {
      case 'EQ':
        return value === bound;
      case 'NE':
        return value !== bound;
      case 'GE':
        return value >= bound;
      case 'LE':
        return value <= bound;
    }
  }
}

/** A stream without a response has status 0. */
export class StatusCodeFilter extends NumberFilter {
  matches(info: StreamInfo): boolean {
    return this.holds(info.responseCode);
  }
}

/** In whole milliseconds. */
export class DurationFilter extends NumberFilter {
  matches(info: StreamInfo): boolean {
    return this.holds(Math.floor(info.durationMs));
  }
}
