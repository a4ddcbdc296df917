// How long this thread has run on a processor.

import { readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second, whatever its own clock (proc(5), USER_HZ). */
const TICK_NS = 10_000_000;
/** utime and stime, counted from the field behind the name of the thread. */
const USER = 11;
const SYSTEM = 12;

/** In nanoseconds, of its own code and of the kernel's; undefined when /proc does not tell. */
export function threadCpuNs(): number | undefined {
  let stat: string;
  try {
    // Read by the thread that asks: an asynchronous call would tell of another one.
    stat = readFileSync('/proc/thread-self/stat', 'latin1');
  } catch {
    return undefined;
  }
  // The name may hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[USER]) + Number(fields[SYSTEM]);
  return Number.isFinite(ticks) ? ticks * TICK_NS : undefined;
}
