// The file of a Unix socket, which somebody else may have replaced by his own.

import { lstatSync, unlinkSync } from 'node:fs';

/** Removes what stands at `path` if it is still the file with this inode. */
export function removeSocketFile(path: string, inode: number): void {
  try {
    if (lstatSync(path).ino === inode) unlinkSync(path);
  } catch {
    // Somebody has removed it already.
  }
}

/**
 * Removes a socket file that a former process has left behind: it would keep the path. Throws an Error for any other file, which
 * is not ours to remove.
 */
export function removeStaleSocket(path: string): void {
  if (path.startsWith('@')) return;
  try {
    if (!lstatSync(path).isSocket()) throw new Error('a file that is no socket has this path');
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
