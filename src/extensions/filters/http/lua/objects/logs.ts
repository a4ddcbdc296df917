// The log methods that all objects have.

import { getLogger, type LuaMethod, onOneLine } from '../../../../sdk.js';

const logger = getLogger('lua');

/** Longer texts are cut. */
const MAX_CHARACTERS = 16 * 1024;

export const LOGS: readonly LuaMethod[] = (
  [
    ['logTrace', 'trace'],
    ['logDebug', 'debug'],
    ['logInfo', 'info'],
    ['logWarn', 'warning'],
    ['logErr', 'error'],
    ['logCritical', 'critical'],
  ] as const
).map(([name, level]) => [
  name,
  's',
  (text: string) => {
    if (logger.isLevelEnabled(level)) logger[level](logLine(text));
  },
]);

/** Logs why a script has failed. */
export function logFailure(message: string): void {
  logger.error(logLine(message));
}

/** One line: the text may contain what a client has sent. */
function logLine(text: string): string {
  const cut = text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;
  return `script log: ${onOneLine(Buffer.from(cut, 'latin1').toString())}`;
}
