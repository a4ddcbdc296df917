// envoy.matching.matchers.ip: whether the text of an input is an address in one of several ranges.

import type { Ip } from '../../../../config/generated/api.js';
import { BatonError, type IpRange, ipRange, isInRange, parseIp } from '../../../sdk.js';
import type { Matched, MatchInput } from './matcher-inputs.js';

export class IpPredicate {
  readonly #input: MatchInput;
  readonly #ranges: readonly IpRange[];
  readonly #statPrefix: string;

  /** Throws a BatonError for an invalid range; `where`: the path of the configuration. */
  constructor({ cidr_ranges = [], stat_prefix = '' }: Ip, input: MatchInput, where: string) {
    this.#input = input;
    this.#statPrefix = `${stat_prefix}.`;
    this.#ranges = cidr_ranges.map(({ address_prefix: prefix = '', prefix_len: bits = 0 }, index) => {
      const range = ipRange(prefix, bits);
      if (range !== undefined) return range;
      throw new BatonError('CONFIG_INVALID', `malformed IP address: ${prefix}`, {
        where: `${where}.cidr_ranges[${index}].address_prefix`,
      });
    });
  }

  holds(matched: Matched): boolean {
    const text = this.#input.text(matched);
    if (text === undefined || text === '') return false;
    const ip = parseIp(text);
    if (ip !== undefined) return this.#ranges.some((range) => isInRange(range, ip));
    matched.stats?.dynamicCounter(this.#statPrefix, 'ip_parsing_failed').increment();
    return false;
  }
}
