// Reloads a configuration whenever its file changes (--watch-config).

import { FileWatch, fileIdentity } from '../../common/files/file-watch.js';
import { internalError } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import type { ConfigurationReload } from './configuration-reload.js';

const logger = getLogger('config');

/** How long after a try that could not read the file the next one begins; and after the first that could not apply it. */
const RETRY_MS = 2000;
/** Up to this, pauses double while it cannot be applied. */
const LONGEST_PAUSE_MS = 60_000;

export interface WatchedFile {
  readonly path: string;
  /** Of the file that was loaded last: see fileIdentity(). */
  readonly identity: string;
}

/** What differs is applied as a whole, or not at all. close() ends it. */
export class WatchedReload {
  readonly #reload: ConfigurationReload;
  readonly #path: string;
  readonly #watch: FileWatch;
  #pauseMs = RETRY_MS;
  #isWaiting = false;
  #isClosed = false;
  #retry: NodeJS.Timeout | undefined;

  constructor(reload: ConfigurationReload, { identity, path }: WatchedFile) {
    this.#reload = reload;
    this.#path = path;
    this.#watch = new FileWatch(path, identity, {
      changed: () => {
        logger.info(`${path} has changed`);
        this.#pauseMs = RETRY_MS;
        this.#next(false);
      },
      failed: (message) => logger.warning(`changes of ${path} may be noticed late: ${message}`),
    });
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#watch.close();
  }

  #next(isRepeated: boolean): void {
    clearTimeout(this.#retry);
    // One that has not begun yet will read what is there then.
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    const begun = () => {
      this.#isWaiting = false;
    };
    this.#reload.runNext({ applies: true, isPartial: false, isRepeated }, begun).then(
      (nextTry) => {
        if (nextTry === undefined || this.#isClosed) return;
        this.#nextIn(nextTry === 'soon' ? RETRY_MS : this.#pauseMs);
        if (nextTry === 'later') this.#pauseMs = Math.min(LONGEST_PAUSE_MS, 2 * this.#pauseMs);
      },
      (error: unknown) => {
        this.#isWaiting = false;
        internalError('a reload of the configuration failed', error);
      },
    );
  }

  /** A file that is gone is waited for: it may come back as the one that was told already. */
  #nextIn(pauseMs: number): void {
    clearTimeout(this.#retry);
    const isGone = () => fileIdentity(this.#path) === '';
    this.#retry = setTimeout(() => (isGone() ? this.#nextIn(pauseMs) : this.#next(true)), pauseMs).unref();
  }
}
