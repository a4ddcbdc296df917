// Processor time of this thread.

import { readFileSync } from 'node:fs';

/** Linux reports hundredths of a second, independent of the kernel's tick (proc(5), USER_HZ). */
const TICK_NS = 10_000_000;
/** Indexes of utime and stime, counted from the field after the thread's name. */
const USER = 11;
const SYSTEM = 12;

/** Returns the user and system time in nanoseconds; undefined if /proc cannot be read. */
export function threadCpuNs(): number | undefined {
  let stat: string;
  try {
    // Synchronous, because an asynchronous read would run on another thread.
    stat = readFileSync('/proc/thread-self/stat', 'latin1');
  } catch {
    return undefined;
  }
  // The name may contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[USER]) + Number(fields[SYSTEM]);
  return Number.isFinite(ticks) ? ticks * TICK_NS : undefined;
}
