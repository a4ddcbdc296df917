// rate_limited_retry_back_off: the delay before a retry that a rate-limiting host requests in a response header.

import { type HeaderKey, headerKey } from '../../../common/text/header-names.js';
import { durationMs } from '../../../common/time/duration.js';
import type { RetryPolicy_RateLimitedRetryBackOff } from '../../../config/generated/api.js';
import { checkFieldName } from '../../headers/field-name.js';
import type { HeaderBlock } from '../../headers/header-block.js';

const DEFAULT_LONGEST_MS = 300_000;

interface ResetHeader {
  readonly key: HeaderKey;
  /** The header has the Unix time of the next request, in seconds; otherwise the number of seconds until then. */
  readonly isTimestamp: boolean;
}

export class RateLimitReset {
  readonly #headers: readonly ResetHeader[];
  readonly #longestMs: number;

  /** @throws BatonError CONFIG_INVALID; `where` is the message's path in the configuration. */
  constructor(config: RetryPolicy_RateLimitedRetryBackOff, where: string) {
    this.#headers = (config.reset_headers ?? []).map(({ name = '', format }, index) => {
      checkFieldName(name, `${where}.reset_headers[${index}].name`);
      return { key: headerKey(name), isTimestamp: format === 'UNIX_TIMESTAMP' };
    });
    this.#longestMs = durationMs(config.max_interval, DEFAULT_LONGEST_MS);
  }

  /**
   * Returns the delay in milliseconds from the first header that has one within max_interval; 0 if there is none.
   * @param nowMs since 1970
   */
  waitMs(response: HeaderBlock, nowMs: number): number {
    for (const { key, isTimestamp } of this.#headers) {
      const text = response.get(key)?.trim() ?? '';
      if (!WHOLE.test(text)) continue;
      const ms = 1000 * (isTimestamp ? Number(text) - Math.floor(nowMs / 1000) : Number(text));
      if (ms >= 0 && ms <= this.#longestMs) return ms;
    }
    return 0;
  }
}

const WHOLE = /^[0-9]{1,15}$/;
