// This machine's address, as x-forwarded-for shows it to other machines.

import { networkInterfaces } from 'node:os';

/** Returns the first address of this machine that other machines can use, else the loopback address. `family`: v4 or v6. */
export function localIp(family: string): string {
  const wanted = family === 'v6' ? 'IPv6' : 'IPv4';
  for (const entries of Object.values(networkInterfaces())) {
    for (const entry of entries ?? []) {
      if (entry.family === wanted && !entry.internal && !entry.address.startsWith('fe80:')) return entry.address;
    }
  }
  return wanted === 'IPv6' ? '::1' : '127.0.0.1';
}
