// Watches the files of one secret, alone or by changes of the directory that the secret names.

import { FileWatch, fileIdentity } from '../../common/files/file-watch.js';
import { getLogger } from '../../log/logger.js';

const logger = getLogger('config');

export class SecretFiles {
  readonly #identities: ReadonlyMap<string, string>;
  #watches: readonly FileWatch[] = [];

  /** Created before the files are read. */
  constructor(paths: readonly string[]) {
    this.#identities = new Map(paths.map((path) => [path, fileIdentity(path)]));
  }

  /** Calls `changed` for each file that is replaced or changed, also if that happened since the constructor ran. */
  watch(directory: string | undefined, changed: () => void): void {
    const within = directory === undefined ? undefined : { path: directory, seesContent: false };
    this.#watches = Array.from(this.#identities, ([path, identity]) => {
      const failed = (message: string) => logger.error(`changes of ${path} may be detected late: ${message}`);
      return new FileWatch(path, identity, { changed, failed }, { within });
    });
  }

  close(): void {
    for (const watch of this.#watches) watch.close();
    this.#watches = [];
  }
}
