// Notices when the tree of a disk layer is changed as a whole: another link moved to its place, or something moved into it.

import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { BatonError, messageOf } from '../common/errors.js';
import { getLogger } from '../log/logger.js';

const logger = getLogger('runtime');

/**
 * Watches a symlink_root. Names that come and go are noticed, not what is written into files: a value would be read half
 * written. The directory around the root must exist, for otherwise nothing would ever be noticed; the root need not yet.
 */
export class RootWatch {
  readonly #root: string;
  readonly #changed: () => void;
  readonly #around: FSWatcher;
  /** Of the directory that the root leads to now. */
  #inside: FSWatcher | undefined;

  /** Calls `changed` in a later turn, perhaps several times for one change. Throws a BatonError RUNTIME_LAYER. */
  constructor(root: string, changed: () => void) {
    this.#root = root;
    this.#changed = changed;
    const around = dirname(root);
    const name = basename(root);
    try {
      this.#around = watchNames(around, (changedName) => {
        if (changedName !== name) return;
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

  #watchInside(): void {
    this.#inside?.close();
    this.#inside = undefined;
    try {
      if (statSync(this.#root, { throwIfNoEntry: false })?.isDirectory() !== true) return;
      this.#inside = watchNames(this.#root, () => this.#changed());
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

function watchNames(directory: string, changed: (name: string | null) => void): FSWatcher {
  const watcher = watch(directory, { persistent: false }, (event, name) => {
    if (event === 'rename') changed(name);
  });
  watcher.on('error', (error) => logger.warning(`${directory} is no longer watched: ${messageOf(error)}`));
  return watcher;
}
