// Reads the umask without changing it. process.umask() sets it to 0 for a moment, and a file that any thread creates in that
// moment is accessible to all users.

import { readFileSync } from 'node:fs';

/** Returns the permissions that new files do not get. Without /proc: all permissions of other users. */
export function currentUmask(): number {
  try {
    return Number.parseInt(/^Umask:\s*([0-7]+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '077', 8);
  } catch {
    return 0o077;
  }
}
