// The umask, read without changing it: process.umask() sets it to 0 for a moment, for all threads, and any file that one of them
// makes then is open to everybody.

import { readFileSync } from 'node:fs';

/** What is taken from the permissions of new files. Without /proc nobody else may do anything with them. */
export function currentUmask(): number {
  try {
    return Number.parseInt(/^Umask:\s*([0-7]+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '077', 8);
  } catch {
    return 0o077;
  }
}
