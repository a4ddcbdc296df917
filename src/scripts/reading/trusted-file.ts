// Whether other users decide what a file contains: by its own permissions, or by those of a directory on the way to it.

import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

const OTHERS_WRITE = 0o002;
/** Entries of the directory can be replaced by their owners only. */
const STICKY = 0o1000;

/** Throws if every user may change or replace the file: it runs with the rights of this process. */
export function checkTrust(path: string): void {
  if ((statSync(path).mode & OTHERS_WRITE) !== 0)
    throw new Error(`every user may write to ${path}: run chmod o-w ${path}`);
  checkWay(path, path, new Set());
}

/** Checks each step from the root to `path`, and to where links on it lead. `seen`: the steps that were checked. */
function checkWay(path: string, file: string, seen: Set<string>): void {
  for (let step = resolve(path); step !== '/' && !seen.has(step); step = dirname(step)) {
    seen.add(step);
    checkStep(dirname(step), basename(step), file);
    if (!lstatSync(step).isSymbolicLink()) continue;
    checkWay(resolve(realpathSync(dirname(step)), readlinkSync(step)), file, seen);
  }
}

function checkStep(directory: string, name: string, file: string): void {
  const { mode } = statSync(directory);
  if ((mode & OTHERS_WRITE) === 0) return;
  if ((mode & STICKY) === 0) throw new Error(`every user may replace ${file}: run chmod o-w ${directory}`);
  const entry = join(directory, name);
  const { uid } = lstatSync(entry);
  if (uid === 0 || uid === process.geteuid!()) return;
  throw new Error(
    `another user may replace ${file}: uid ${uid} owns ${entry}, in a directory that every user may write to`,
  );
}
