// Reloads the configuration when its file changes (--watch-config).

import { FileWatch, fileIdentity } from '../../common/files/file-watch.js';
import { internalError } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import type { ConfigurationReload } from './configuration-reload.js';

const logger = getLogger('config');

/** Pause after a failed read of the file, and after the first failure to apply it. */
const RETRY_MS = 2000;
/** Upper limit of the pauses, which double while applying fails. */
const MAX_PAUSE_MS = 60_000;

export interface WatchedFile {
  readonly path: string;
  /** Identity of the file that was loaded last: see fileIdentity(). */
  readonly identity: string;
}

/** Applies each change of the file completely or not at all, until close(). */
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
      failed: (message) => logger.warning(`changes of ${path} may be detected late: ${message}`),
    });
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#watch.close();
  }

  #next(isRepeated: boolean): void {
    clearTimeout(this.#retry);
    // A reload that has not started yet will read the present file.
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    const begun = () => {
      this.#isWaiting = false;
    };
    this.#reload.runNext({ applies: true, isPartial: false, isRepeated }, begun).then(
      (nextTry) => {
        if (nextTry === undefined || this.#isClosed) return;
        this.#nextIn(nextTry === 'soon' ? RETRY_MS : this.#pauseMs);
        if (nextTry === 'later') this.#pauseMs = Math.min(MAX_PAUSE_MS, 2 * this.#pauseMs);
      },
      (error: unknown) => {
        this.#isWaiting = false;
        internalError('a reload of the configuration failed', error);
      },
    );
  }

  /** Waits while the file is missing: it may return with the identity that was loaded last. */
  #nextIn(pauseMs: number): void {
    clearTimeout(this.#retry);
    const isGone = () => fileIdentity(this.#path) === '';
    this.#retry = setTimeout(() => (isGone() ? this.#nextIn(pauseMs) : this.#next(true)), pauseMs).unref();
  }
}
