// Which clients count as internal (HttpConnectionManager.internal_address_config): their x-envoy-* headers are obeyed.
//
// As in Envoy since 1.33 nobody does unless ranges are configured: in a network with many tenants private addresses say nothing.

import { BatonError } from '../../common/errors.js';
import type { HttpConnectionManager } from '../../config/generated/api.js';
import { parseIp } from '../../io/address.js';

type InternalAddressConfig = NonNullable<HttpConnectionManager['internal_address_config']>;

export class InternalAddresses {
  readonly #ranges: readonly Range[];
  readonly #unixSockets: boolean;
  /** The last answer: the requests of a connection come one after another. */
  #lastIp = '';
  #lastAnswer: boolean;

  /** @throws BatonError CONFIG_INVALID for a prefix that is no IP address */
  constructor(config: InternalAddressConfig) {
    this.#ranges = (config.cidr_ranges ?? []).map((range, index) => ({
      prefix: prefixOf(range.address_prefix ?? '', `cidr_ranges[${index}].address_prefix`),
      bits: range.prefix_len ?? 0,
    }));
    this.#unixSockets = config.unix_sockets ?? false;
    this.#lastAnswer = this.#unixSockets;
  }

  /** Undefined when nothing is configured. */
  static of(config: InternalAddressConfig | undefined): InternalAddresses | undefined {
    return config === undefined ? undefined : new InternalAddresses(config);
  }

  /** Whether an address (without port; '' for a Unix socket) is internal. */
  has(ip: string): boolean {
    if (ip !== this.#lastIp) {
      this.#lastIp = ip;
      this.#lastAnswer = ip === '' ? this.#unixSockets : this.#isInRange(ip);
    }
    return this.#lastAnswer;
  }

  #isInRange(ip: string): boolean {
    const bytes = parseIp(ip);
    return bytes !== undefined && this.#ranges.some((range) => contains(range, bytes));
  }
}

interface Range {
  readonly prefix: Uint8Array;
  readonly bits: number;
}

function prefixOf(text: string, where: string): Uint8Array {
  const prefix = parseIp(text);
  if (prefix === undefined) {
    throw new BatonError('CONFIG_INVALID', `'${text}' is not an IP address`, {
      where,
      remedy: 'give one such as 10.0.0.0',
    });
  }
  return prefix;
}

function contains(range: Range, address: Uint8Array): boolean {
  if (address.length !== range.prefix.length) return false;
  const whole = range.bits >> 3;
  for (let i = 0; i < whole; i++) if (address[i] !== range.prefix[i]) return false;
  const rest = range.bits & 7;
  return rest === 0 || address[whole]! >> (8 - rest) === range.prefix[whole]! >> (8 - rest);
}
