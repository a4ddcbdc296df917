// The address by which this machine is told to others (x-forwarded-for).

import { networkInterfaces } from 'node:os';

/** `family`: v4 or v6. The first address of this machine that others could use; the loopback address when there is none. */
export function localIp(family: string): string {
  const wanted = family === 'v6' ? 'IPv6' : 'IPv4';
  for (const entries of Object.values(networkInterfaces())) {
    for (const entry of entries ?? []) {
      if (entry.family === wanted && !entry.internal && !entry.address.startsWith('fe80:')) return entry.address;
    }
  }
  return wanted === 'IPv6' ? '::1' : '127.0.0.1';
}
