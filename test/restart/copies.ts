// Descriptors that travel in a test: copies of one, which can be counted.

import { openSync, readdirSync, readlinkSync } from 'node:fs';

/** The descriptor that is sent along; open for as long as this process lives. */
export const original = openSync('/dev/null', 'r');

/** How many this process has open of it, itself included. */
export function copies(): number {
  return readdirSync('/proc/self/fd').filter(isCopy).length;
}

function isCopy(fd: string): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === '/dev/null';
  } catch {
    return false;
  }
}
