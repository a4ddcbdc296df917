// Whether a socket is bound where it should be, by the raw sockaddr that the kernel gives.

import { type Address, AddressKind, encodeAddress } from './address.js';

/** Of sockaddr_in and sockaddr_in6: where flow label and address begin, and where the address ends. */
const IP4_ADDRESS = [4, 8] as const;
const IP6_ADDRESS = [8, 24] as const;
const IP6_SCOPE = [24, 28] as const;

/**
 * Whether `bound` is exactly this address: a wildcard is no other address, and an IPv4-mapped IPv6 address no IPv4 address. A port 0 is
 * no port that a socket is bound to.
 */
export function isBoundTo(bound: Uint8Array, address: Address): boolean {
  const wanted = encodeAddress(address);
  if (!areEqual(bound, wanted, 0, 2)) return false;
  if (address.kind === AddressKind.Unix) return areEqual(withoutNul(bound), withoutNul(wanted));
  if (address.port === 0 || !areEqual(bound, wanted, 2, 4)) return false;
  if (address.kind === AddressKind.Ip4) return areEqual(bound, wanted, ...IP4_ADDRESS);
  // The kernel keeps the scope of link-local addresses alone.
  const hasScope = bound.subarray(...IP6_SCOPE).some((byte) => byte !== 0);
  return areEqual(bound, wanted, ...IP6_ADDRESS) && (!hasScope || areEqual(bound, wanted, ...IP6_SCOPE));
}

function areEqual(one: Uint8Array, other: Uint8Array, from = 0, to?: number): boolean {
  return Buffer.compare(one.subarray(from, to), other.subarray(from, to)) === 0;
}

/** A path in the file system ends with one, or with the sockaddr; an abstract name begins with one. */
function withoutNul(sockaddr: Uint8Array): Uint8Array {
  return sockaddr.at(-1) === 0 && sockaddr[2] !== 0 ? sockaddr.subarray(0, -1) : sockaddr;
}
