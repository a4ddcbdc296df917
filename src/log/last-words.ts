// What ends the program is told where somebody looks: on standard error too when the log is silent or elsewhere.

import { print } from '../common/process/print.js';
import type { Logger } from './log-methods.js';

/** Repeats a critical message that was logged, unless the log has shown it there. `logPath`: of --log-path, if any. */
export function repeatOnStderr(logger: Logger, logPath: string | undefined, message: string): void {
  const isOnStderr = logPath === undefined || logPath === '' || logPath === '/dev/stderr';
  if (!isOnStderr || !logger.isLevelEnabled('critical')) print(process.stderr, `${message}\n`);
}
