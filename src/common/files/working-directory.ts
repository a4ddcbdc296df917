// The working directory. Node starts no thread in one that was removed, such as the directory of a former release.

import { realpathSync } from 'node:fs';

/**
 * Returns the base of relative paths, including those opened later. Returns `/` if the directory was removed: the process
 * will change to it.
 */
export function workingDirectory(): string {
  try {
    return process.cwd();
  } catch {
    return '/';
  }
}

/**
 * Called before a thread starts. Changes to `/` if the working directory was removed. Relative paths had stopped working
 * before.
 */
export function leaveRemovedDirectory(): void {
  try {
    // process.cwd() would return its cached value.
    realpathSync.native('.');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') process.chdir('/');
  }
}
