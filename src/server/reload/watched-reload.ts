// Reloads a configuration whenever its file changes (--watch-config).

import { FileWatch } from '../../common/files/file-watch.js';
import { Level } from '../../log/levels.js';
import { getLogger } from '../../log/logger.js';
import type { ConfigurationReload } from './configuration-reload.js';

const logger = getLogger('config');

export interface WatchedFile {
  readonly path: string;
  /** Of the file that was loaded last: see fileIdentity(). */
  readonly identity: string;
}

/** What differs is applied as a whole, or not at all. close() ends it. */
export function watchConfiguration(reload: ConfigurationReload, { identity, path }: WatchedFile): FileWatch {
  let isWaiting = false;
  return new FileWatch(path, identity, {
    changed: () => {
      logger.info(`${path} has changed`);
      // One that has not begun yet will read what is there then.
      if (isWaiting) return;
      isWaiting = true;
      const begun = () => {
        isWaiting = false;
      };
      reload.runNext({ applies: true, isPartial: false }, begun).catch((error: unknown) => {
        logger.exception(Level.Error, 'a reload of the configuration failed', error);
      });
    },
    failed: (message) => logger.warning(`changes of ${path} may be noticed late: ${message}`),
  });
}
