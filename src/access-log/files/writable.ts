// Checks that a log file can be opened, without opening it.

import { BatonError, messageOf } from '../../common/errors/errors.js';
import { standardStream } from '../../common/files/standard-streams.js';
import { loadShim } from '../../io/shim.js';

/**
 * Checks that a path can be appended to. Opens and creates nothing.
 * @throws BatonError CONFIG_INVALID for a directory, missing permission, a missing parent directory, or a link or file that
 * another user may have placed there
 */
export function checkWritable(path: string): void {
  if (standardStream(path) !== undefined) return;
  try {
    loadShim().checkOutput(path);
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', `unable to open file '${path}': ${messageOf(error)}`, { cause: error });
  }
}
