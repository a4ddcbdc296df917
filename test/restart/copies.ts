// Counts the copies of a descriptor that tests send to other processes.

import { openSync, readdirSync, readlinkSync } from 'node:fs';

/** The descriptor that is sent; open as long as this process lives. */
export const original = openSync('/dev/null', 'r');

/** Returns how many copies this process has open, including the original. */
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
