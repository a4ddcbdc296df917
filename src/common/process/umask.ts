// The umask, read without changing it: process.umask() sets it to 0 for a moment, for all threads, and any file that one of them
// makes then is open to everybody.

import { readFileSync } from 'node:fs';

/** The permissions that new files do not get. Without /proc: all those of other users. */
export function currentUmask(): number {
  try {
    return Number.parseInt(/^Umask:\s*([0-7]+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '077', 8);
  } catch {
    return 0o077;
  }
}
