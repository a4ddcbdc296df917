// --base-id-path: a file from which scripts read the process's base ID.

import { messageOf } from '../common/errors/errors.js';
import { writeValueFile } from '../io/value-file.js';
import { getLogger } from '../log/logger.js';

const logger = getLogger('main');

/** Writes the ID in decimal, without a newline. A write error is logged, and the server continues. */
export function writeBaseIdFile(path: string, baseId: number): void {
  try {
    writeValueFile(path, `${baseId}`);
  } catch (error) {
    logger.critical(`cannot open base id output file ${path} for writing. ${messageOf(error)}`);
  }
}
