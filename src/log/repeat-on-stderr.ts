// Repeats fatal messages on standard error if the log does not show them there.

import { print } from '../common/process/print.js';
import { indentedLines } from '../common/text/shown.js';
import type { Logger } from './log-methods.js';

/**
 * Writes a critical message that was logged to standard error, unless the log has written it there. `logPath`: the value of
 * --log-path.
 */
export function repeatOnStderr(logger: Logger, logPath: string | undefined, message: string): void {
  const isOnStderr = logPath === undefined || logPath === '' || logPath === '/dev/stderr';
  if (!isOnStderr || !logger.isLevelEnabled('critical')) print(process.stderr, `${indentedLines(message)}\n`);
}
