// Notices when the tree of a disk layer is changed as a whole: another link moved to its place, or something moved into it.

import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { BatonError, messageOf } from '../common/errors/errors.js';
import { getLogger } from '../log/logger.js';

const logger = getLogger('runtime');

/** For so long, and again after each write, a file that has come may still be written: it was made here, not moved. */
const MADE_MS = 10_000;

/**
 * Watches a symlink_root. Names that come and go are noticed, and what is written into a file that has just come; not what is
 * written into others: a value would be read half written. The directory around the root must exist, for otherwise nothing
 * would ever be noticed; the root need not yet.
 */
export class RootWatch {
  readonly #root: string;
  readonly #changed: () => void;
  readonly #around: FSWatcher;
  /** Of the directory that the root leads to now. */
  #inside: FSWatcher | undefined;
  /** When names in it have come, or were written last. */
  readonly #fresh = new Map<string, number>();

  /** Calls `changed` in a later turn, perhaps several times for one change. Throws a BatonError RUNTIME_LAYER. */
  constructor(root: string, changed: () => void) {
    this.#root = root;
    this.#changed = changed;
    const around = dirname(root);
    const name = basename(root);
    try {
      this.#around = watchNames(around, (changedName, isWrite) => {
        if (changedName !== name || isWrite) return;
        this.#watchInside();
        this.#changed();
      });
    } catch (error) {
      throw new BatonError('RUNTIME_LAYER', `changes of runtime cannot be noticed: ${messageOf(error)}`, {
        where: root,
        remedy: `create the directory ${around}`,
        cause: error,
      });
    }
    this.#watchInside();
  }

  close(): void {
    this.#around.close();
    this.#inside?.close();
  }

  #touched(name: string): void {
    const now = performance.now();
    for (const [each, sinceMs] of this.#fresh) if (now - sinceMs > MADE_MS) this.#fresh.delete(each);
    this.#fresh.set(name, now);
    this.#changed();
  }

  #isFresh(name: string): boolean {
    const sinceMs = this.#fresh.get(name);
    return sinceMs !== undefined && performance.now() - sinceMs <= MADE_MS;
  }

  #watchInside(): void {
    this.#inside?.close();
    this.#inside = undefined;
    this.#fresh.clear();
    try {
      if (statSync(this.#root, { throwIfNoEntry: false })?.isDirectory() !== true) return;
      this.#inside = watchNames(this.#root, (name, isWrite) => {
        if (!isWrite || this.#isFresh(name)) this.#touched(name);
      });
    } catch (error) {
      // It may have gone meanwhile: then its name comes or goes once more.
      logger.warning(`${this.#root} cannot be watched: ${messageOf(error)}`);
    }
  }
}

/** Another text when another directory is at this path, or names have come or gone in it. */
export function rootIdentity(root: string): string {
  try {
    const { dev, ino, mtimeNs } = statSync(root, { bigint: true });
    return `${dev}:${ino}:${mtimeNs}`;
  } catch {
    // What keeps it from being read is told when it is read.
    return '';
  }
}

/** Calls `changed` with names that come, go or are written to. */
function watchNames(directory: string, changed: (name: string, isWrite: boolean) => void): FSWatcher {
  const watcher = watch(directory, { persistent: false }, (event, name) => changed(name ?? '', event === 'change'));
  watcher.on('error', (error) => logger.warning(`${directory} is no longer watched: ${messageOf(error)}`));
  return watcher;
}
