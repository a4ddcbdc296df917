// Checks the raw sockaddr that a socket is bound to.

import { type Address, AddressKind, encodeAddress } from './address.js';

/** Byte ranges in sockaddr_in and sockaddr_in6; that of IPv6 excludes the flow label. */
const IP4_ADDRESS = [4, 8] as const;
const IP6_ADDRESS = [8, 24] as const;
const IP6_SCOPE = [24, 28] as const;

/**
 * Returns whether `bound` is exactly this address: a wildcard equals only itself, and an IPv4-mapped IPv6 address does not equal an IPv4
 * address. Port 0 never matches.
 */
export function isBoundTo(bound: Uint8Array, address: Address): boolean {
  const wanted = encodeAddress(address);
  if (!areEqual(bound, wanted, 0, 2)) return false;
  if (address.kind === AddressKind.Unix) return areEqual(withoutNul(bound), withoutNul(wanted));
  if (address.port === 0 || !areEqual(bound, wanted, 2, 4)) return false;
  if (address.kind === AddressKind.Ip4) return areEqual(bound, wanted, ...IP4_ADDRESS);
  // The kernel keeps the scope only for link-local addresses.
  const hasScope = bound.subarray(...IP6_SCOPE).some((byte) => byte !== 0);
  return areEqual(bound, wanted, ...IP6_ADDRESS) && (!hasScope || areEqual(bound, wanted, ...IP6_SCOPE));
}

function areEqual(one: Uint8Array, other: Uint8Array, from = 0, to?: number): boolean {
  return Buffer.compare(one.subarray(from, to), other.subarray(from, to)) === 0;
}

/** Removes the optional final NUL of a filesystem path. An abstract name begins with a NUL. */
function withoutNul(sockaddr: Uint8Array): Uint8Array {
  return sockaddr.at(-1) === 0 && sockaddr[2] !== 0 ? sockaddr.subarray(0, -1) : sockaddr;
}
