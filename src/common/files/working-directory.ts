// The working directory, in which Node begins threads: it begins none in one that has been removed, as that of a former release is.

import { realpathSync } from 'node:fs';

/** Where relative paths of files begin that are opened later too; `/` when it has been removed, where the process will go. */
export function workingDirectory(): string {
  try {
    return process.cwd();
  } catch {
    return '/';
  }
}

/** Before a thread begins: a process whose working directory is gone goes to `/`. No relative path led anywhere any more. */
export function leaveRemovedDirectory(): void {
  try {
    // process.cwd() would only remember it.
    realpathSync.native('.');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') process.chdir('/');
  }
}
