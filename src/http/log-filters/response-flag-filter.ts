// response_flag_filter: matches streams with one of the configured flags, or with any flag if none is configured.

import { flagsOf } from '../../access-log/stream/response-flags.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { ResponseFlagFilter as ResponseFlagConfig } from '../../config/generated/api.js';
import { type LogFilter, NO_NEEDS } from './log-filter.js';

const ANY = -1;

export class ResponseFlagFilter implements LogFilter {
  readonly needs = NO_NEEDS;
  readonly #flags: number;

  /** The API's validation rules have checked the names. */
  constructor({ flags = [] }: ResponseFlagConfig) {
    this.#flags = flags.length === 0 ? ANY : flags.reduce((sum, flag) => sum | flagsOf(flag), 0);
  }

  matches(info: StreamInfo): boolean {
    return (info.responseFlags & this.#flags) !== 0;
  }
}
