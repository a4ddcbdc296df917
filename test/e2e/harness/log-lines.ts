// Reads the lines written to a log file so far.

import { existsSync, readFileSync } from 'node:fs';

/** Returns the complete lines of a file, as Latin-1; none while it does not exist. */
export function logLines(path: string): string[] {
  return existsSync(path) ? readFileSync(path, 'latin1').split('\n').slice(0, -1) : [];
}
