// Watches files of certificates and keys, alone or by changes of a directory that the configuration names.

import { FileWatch, fileIdentity } from '../../common/files/file-watch.js';
import { getLogger } from '../../log/logger.js';

const logger = getLogger('config');

/** Paths with the directory whose changes make each file due for reading; undefined: the file is watched by itself. */
export type FilesToWatch = ReadonlyMap<string, string | undefined>;

export class WatchedFiles {
  readonly #files: FilesToWatch;
  readonly #identities: ReadonlyMap<string, string>;
  #watches: readonly FileWatch[] = [];

  /** Created before the files are read. */
  constructor(files: FilesToWatch) {
    this.#files = files;
    this.#identities = new Map(Array.from(files.keys(), (path) => [path, fileIdentity(path)]));
  }

  get isEmpty(): boolean {
    return this.#files.size === 0;
  }

  get paths(): Iterable<string> {
    return this.#files.keys();
  }

  /** Calls `changed` for each file that is replaced or changed, also if that happened since the constructor ran. */
  watch(changed: () => void): void {
    this.#watches = Array.from(this.#identities, ([path, identity]) => {
      const directory = this.#files.get(path);
      const within = directory === undefined ? undefined : { path: directory, seesContent: false };
      const failed = (message: string) => logger.error(`changes of ${path} may be detected late: ${message}`);
      return new FileWatch(path, identity, { changed, failed }, { within });
    });
  }

  close(): void {
    for (const watch of this.#watches) watch.close();
    this.#watches = [];
  }
}
