// Detects when the tree of a disk layer is replaced, by moving another link to its place, or gets or loses files.

import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { BatonError, messageOf } from '../common/errors/errors.js';
import { getLogger } from '../log/logger.js';

const logger = getLogger('runtime');

/** A new file was perhaps created here instead of moved: for this time, and again after each write, it may still be written. */
const WRITE_WINDOW_MS = 10_000;

/**
 * Watches a symlink_root. Reports names that are added or removed, and writes to files that were just added. Ignores writes to
 * other files, because a value could be read half written. The parent directory of the root must exist, because otherwise it
 * could not be watched; the root need not exist yet.
 */
export class RootWatch {
  readonly #root: string;
  readonly #changed: () => void;
  readonly #parentWatcher: FSWatcher;
  /** Watches the directory that the root currently points to. */
  #rootWatcher: FSWatcher | undefined;
  /** When names in it were added or last written. */
  readonly #recent = new Map<string, number>();

  /** Calls `changed` in a later turn, possibly several times for one change. Throws a BatonError RUNTIME_LAYER. */
  constructor(root: string, changed: () => void) {
    this.#root = root;
    this.#changed = changed;
    const parent = dirname(root);
    const name = basename(root);
    try {
      this.#parentWatcher = watchNames(parent, (changedName, isWrite) => {
        if (changedName !== name || isWrite) return;
        this.#watchRoot();
        this.#changed();
      });
    } catch (error) {
      throw new BatonError('RUNTIME_LAYER', `runtime cannot be watched: ${messageOf(error)}`, {
        where: root,
        remedy: `create the directory ${parent}`,
        cause: error,
      });
    }
    this.#watchRoot();
  }

  close(): void {
    this.#parentWatcher.close();
    this.#rootWatcher?.close();
  }

  #touched(name: string): void {
    const now = performance.now();
    for (const [each, sinceMs] of this.#recent) if (now - sinceMs > WRITE_WINDOW_MS) this.#recent.delete(each);
    this.#recent.set(name, now);
    this.#changed();
  }

  #isRecent(name: string): boolean {
    const sinceMs = this.#recent.get(name);
    return sinceMs !== undefined && performance.now() - sinceMs <= WRITE_WINDOW_MS;
  }

  #watchRoot(): void {
    this.#rootWatcher?.close();
    this.#rootWatcher = undefined;
    this.#recent.clear();
    try {
      if (statSync(this.#root, { throwIfNoEntry: false })?.isDirectory() !== true) return;
      this.#rootWatcher = watchNames(this.#root, (name, isWrite) => {
        if (!isWrite || this.#isRecent(name)) this.#touched(name);
      });
    } catch (error) {
      // The directory may have been removed meanwhile; then its name changes once more.
      logger.warning(`${this.#root} cannot be watched: ${messageOf(error)}`);
    }
  }
}

/** Returns a text that changes when the path points to another directory or names are added to or removed from it. */
export function rootIdentity(root: string): string {
  try {
    const { dev, ino, mtimeNs } = statSync(root, { bigint: true });
    return `${dev}:${ino}:${mtimeNs}`;
  } catch {
    // The error is reported when the directory is read.
    return '';
  }
}

/** Calls `changed` with names that are added, removed or written. */
function watchNames(directory: string, changed: (name: string, isWrite: boolean) => void): FSWatcher {
  const watcher = watch(directory, { persistent: false }, (event, name) => changed(name ?? '', event === 'change'));
  watcher.on('error', (error) => logger.warning(`${directory} is no longer watched: ${messageOf(error)}`));
  return watcher;
}
