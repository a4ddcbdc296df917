// Reloads a configuration whenever its file changes (--watch-config).

import { FileWatch } from '../../common/files/file-watch.js';
import { Level } from '../../log/levels.js';
import { getLogger } from '../../log/logger.js';
import type { ConfigurationReload } from './configuration-reload.js';

const logger = getLogger('config');

/** How long after a try for which there was no thread the next one begins. */
const RETRY_MS = 2000;

export interface WatchedFile {
  readonly path: string;
  /** Of the file that was loaded last: see fileIdentity(). */
  readonly identity: string;
}

/** What differs is applied as a whole, or not at all. close() ends it. */
export class WatchedReload {
  readonly #reload: ConfigurationReload;
  readonly #watch: FileWatch;
  #isWaiting = false;
  #isClosed = false;
  #retry: NodeJS.Timeout | undefined;

  constructor(reload: ConfigurationReload, { identity, path }: WatchedFile) {
    this.#reload = reload;
    this.#watch = new FileWatch(path, identity, {
      changed: () => {
        logger.info(`${path} has changed`);
        this.#next();
      },
      failed: (message) => logger.warning(`changes of ${path} may be noticed late: ${message}`),
    });
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#watch.close();
  }

  #next(): void {
    clearTimeout(this.#retry);
    // One that has not begun yet will read what is there then.
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    const begun = () => {
      this.#isWaiting = false;
    };
    this.#reload.runNext({ applies: true, isPartial: false }, begun).then(
      (isWorthARetry) => {
        if (!isWorthARetry || this.#isClosed) return;
        clearTimeout(this.#retry);
        this.#retry = setTimeout(() => this.#next(), RETRY_MS).unref();
      },
      (error: unknown) => logger.exception(Level.Error, 'a reload of the configuration failed', error),
    );
  }
}
