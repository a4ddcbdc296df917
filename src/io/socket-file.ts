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
