// Internal clients (HttpConnectionManager.internal_address_config), whose x-envoy-* headers are obeyed.
//
// As in Envoy since 1.33, no client is internal unless ranges are configured: in a multi-tenant network a private address is not proof.

import { BatonError } from '../../../common/errors/errors.js';
import type { HttpConnectionManager } from '../../../config/generated/api.js';
import { parseIp } from '../../../io/addresses/address.js';
import { type IpRange, ipRange, isInRange } from '../../../io/addresses/ip-range.js';

type InternalAddressConfig = NonNullable<HttpConnectionManager['internal_address_config']>;

export class InternalAddresses {
  readonly #ranges: readonly IpRange[];
  readonly #unixSockets: boolean;
  /** Cache of the last result: requests of a connection often follow each other. */
  #lastIp = '';
  #lastAnswer: boolean;

  /** @throws BatonError CONFIG_INVALID for a prefix that is not an IP address */
  constructor(config: InternalAddressConfig) {
    this.#ranges = (config.cidr_ranges ?? []).map(({ address_prefix = '', prefix_len = 0 }, index) =>
      rangeOf(address_prefix, prefix_len, `cidr_ranges[${index}].address_prefix`),
    );
    this.#unixSockets = config.unix_sockets ?? false;
    this.#lastAnswer = this.#unixSockets;
  }

  /** Returns undefined if nothing is configured. */
  static of(config: InternalAddressConfig | undefined): InternalAddresses | undefined {
    return config === undefined ? undefined : new InternalAddresses(config);
  }

  /** Returns whether an address (without port; '' for a Unix socket) is internal. */
  has(ip: string): boolean {
    if (ip !== this.#lastIp) {
      this.#lastIp = ip;
      this.#lastAnswer = ip === '' ? this.#unixSockets : this.#isInRange(ip);
    }
    return this.#lastAnswer;
  }

  #isInRange(ip: string): boolean {
    const bytes = parseIp(ip);
    return bytes !== undefined && this.#ranges.some((range) => isInRange(range, bytes));
  }
}

function rangeOf(prefix: string, bits: number, where: string): IpRange {
  const range = ipRange(prefix, bits);
  if (range === undefined) {
    throw new BatonError('CONFIG_INVALID', `'${prefix}' is not an IP address`, {
      where,
      remedy: 'give one such as 10.0.0.0',
    });
  }
  return range;
}
