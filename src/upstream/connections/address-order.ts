// The order in which the addresses of a host are tried (RFC 8305 section 4).

import type { Address, AddressKind } from '../../io/addresses/address.js';

/** upstream_connection_options.happy_eyeballs_config. */
export interface AddressPreference {
  /** Whose addresses are first; undefined: that of the host's first address. */
  readonly family: AddressKind.Ip4 | AddressKind.Ip6 | undefined;
  /** How many of them precede each address of another family. */
  readonly count: number;
}

export const NO_PREFERENCE: AddressPreference = { family: undefined, count: 1 };

/**
 * Returns the addresses in the order of connects: `count` of the preferred family, then one of the others, and so on; each in its own order.
 * `addresses` has at least one. An address that is not an IP address belongs to the others.
 */
export function addressOrder(addresses: readonly Address[], { count, family }: AddressPreference): Address[] {
  const preferred = family ?? addresses[0]!.kind;
  const first = addresses.filter(({ kind }) => kind === preferred);
  const others = addresses.filter(({ kind }) => kind !== preferred);
  const ordered: Address[] = [];
  for (let at = 0, other = 0; at < first.length || other < others.length; at += count, other++) {
    ordered.push(...first.slice(at, at + count), ...others.slice(other, other + 1));
  }
  return ordered;
}
