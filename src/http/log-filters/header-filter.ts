// header_filter: a condition on the request head, with the rules of route header matchers.

import { noHeaderNeeds } from '../../access-log/formats/format.js';
import type { HeaderNeeds } from '../../access-log/operators/operator.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { NO_HEAD } from '../../access-log/stream/text-headers.js';
import type { HeaderMatcher } from '../../config/generated/api.js';
import { HeaderRule } from '../routing/matching/header-rule.js';
import type { LogFilter } from './log-filter.js';

export class HeaderFilter implements LogFilter {
  readonly needs: HeaderNeeds;
  readonly #rule: HeaderRule;

  /** @throws BatonError when the matcher is invalid; `where` is its path in the configuration. */
  constructor(config: HeaderMatcher, where: string) {
    this.#rule = new HeaderRule(config, where);
    this.needs = { ...noHeaderNeeds(), request: new Set([config.name!.toLowerCase()]) };
  }

  /** Without a readable request, as in TCP, the head is treated as empty. */
  matches(info: StreamInfo): boolean {
    return this.#rule.matches(info.requestHeaders ?? NO_HEAD);
  }
}
