// The configured tags, by ranges of addresses.

import type { IPTagging } from '../../../../config/generated/api.js';
import { BatonError, byteText, type IpRange, ipRange } from '../../../sdk.js';

/** Throws a BatonError for a prefix that is not an address. */
export function tagsOf({ ip_tags: tags = [] }: IPTagging) {
  const byText = new Map<string, [IpRange, string[]]>();
  for (const [index, { ip_list: list = [], ip_tag_name: tag = '' }] of tags.entries()) {
    const name = byteText(tag);
    for (const [at, { address_prefix: prefix = '', prefix_len: bits = 0 }] of list.entries()) {
      const range = ipRange(prefix, bits);
      if (range === undefined) {
        const where = `ip_tags[${index}].ip_list[${at}].address_prefix`;
        throw new BatonError('CONFIG_INVALID', `'${prefix}' is not an IP address`, { where });
      }
      const key = `${range.prefix}/${range.bits}`;
      const known = byText.get(key);
      if (known === undefined) byText.set(key, [range, [name]]);
      else if (!known[1].includes(name)) known[1].push(name);
    }
  }
  return { ranges: [...byText.values()], names: [...new Set(tags.map(({ ip_tag_name: tag = '' }) => byteText(tag)))] };
}
