// Whether a log file could be opened, found without opening it.

import { BatonError, messageOf } from '../../common/errors/errors.js';
import { standardStream } from '../../common/files/standard-streams.js';
import { loadShim } from '../../io/shim.js';

/**
 * Refuses a path that cannot be appended to: a directory, no permission, no directory to make the file in, or what a stranger may have
 * put there. Nothing is opened or made.
 * @throws BatonError CONFIG_INVALID
 */
export function checkWritable(path: string): void {
  if (standardStream(path) !== undefined) return;
  try {
    loadShim().checkOutput(path);
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', `unable to open file '${path}': ${messageOf(error)}`, { cause: error });
  }
}
