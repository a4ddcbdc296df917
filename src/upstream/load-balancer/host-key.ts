// What a host is known by where hosts are chosen by hash: it gets the same requests as long as it has the same key.

import { byteText } from '../../http/headers/byte-text.js';
import { addressText, decodeSockaddr } from '../../io/addresses/address.js';
import type { HostSetData } from '../hosts/host-set.js';

/**
 * The `hash_key` of its metadata, or its hostname if those count and it has one, or its address, as `127.0.0.1:80`.
 * One character a byte.
 */
export function hostKey(hosts: HostSetData, index: number, usesHostname: boolean): string {
  const { hashKeys, hostnameIndexes, names, sockaddrEnds, sockaddrs } = hosts;
  const own = hashKeys?.[index] || (usesHostname ? names[hostnameIndexes[index]!]! : '');
  if (own !== '') return byteText(own);
  const start = index === 0 ? 0 : sockaddrEnds[index - 1]!;
  return byteText(addressText(decodeSockaddr(sockaddrs, start, sockaddrEnds[index]! - start)));
}
