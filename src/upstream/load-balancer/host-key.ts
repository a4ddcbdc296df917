// The key of a host for hashing policies: a host gets the same requests as long as it has the same key.

import { byteText } from '../../common/text/byte-text.js';
import { addressText, decodeSockaddr } from '../../io/addresses/address.js';
import type { HostSetData } from '../hosts/host-set.js';

/**
 * Returns the `hash_key` of its metadata, or else its hostname if `usesHostname`, or else its address, as `127.0.0.1:80`. One
 * character per byte.
 */
export function hostKey(hosts: HostSetData, index: number, usesHostname: boolean): string {
  const { hashKeys, hostnameIndexes, names, sockaddrEnds, sockaddrs } = hosts;
  const own = hashKeys?.[index] || (usesHostname ? names[hostnameIndexes[index]!]! : '');
  if (own !== '') return byteText(own);
  const start = index === 0 ? 0 : sockaddrEnds[index - 1]!;
  return byteText(addressText(decodeSockaddr(sockaddrs, start, sockaddrEnds[index]! - start)));
}
