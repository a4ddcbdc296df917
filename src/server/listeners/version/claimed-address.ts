// The addresses of listeners as texts that are equal only where two listeners cannot be bound at the same time: TCP and UDP have their
// own ports.

import { isUdp } from '../../../config/fields/udp.js';
import type { Listener } from '../../../config/generated/api.js';
import { type Address, addressText } from '../../../io/addresses/address.js';

const UDP = 'udp://';

/** `address`: of the listener. */
export function claimText(listener: Listener, address: Address): string {
  return claimOf(address, isUdp(listener));
}

export function claimOf(address: Address, isDatagram: boolean): string {
  return isDatagram ? `${UDP}${addressText(address)}` : addressText(address);
}

/** Returns the address in such a text. */
export function claimedText(claim: string): string {
  return claim.startsWith(UDP) ? claim.slice(UDP.length) : claim;
}
