// Third-party programs that tests talk to, and what happens where one is missing.

import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

/**
 * Returns the path of a program, or the options that skip a test that needs it. In CI a missing program is an Error: the run
 * has installed it, and its tests must not be skipped unnoticed.
 */
export function findPeer(name: string): { path: string } | { path: undefined; skip: string } {
  for (const directory of (process.env['PATH'] ?? '').split(':')) {
    const path = join(directory, name);
    try {
      accessSync(path, constants.X_OK);
      return { path };
    } catch {
      // Not in this directory.
    }
  }
  if (process.env['CI']) throw new Error(`${name} is not installed, and CI requires it`);
  return { path: undefined, skip: `${name} is not installed` };
}
