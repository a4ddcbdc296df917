// What stands in a log by now.

import { existsSync, readFileSync } from 'node:fs';

/** The complete lines of a file, as Latin-1; none while it is not there. */
export function logLines(path: string): string[] {
  return existsSync(path) ? readFileSync(path, 'latin1').split('\n').slice(0, -1) : [];
}
