// Log levels: numbers to compare, names as the command line and the admin interface write them.

/** In rising order of importance; a logger at level L prints messages of L and above. */
export const enum Level {
  Trace = 0,
  Debug = 1,
  Info = 2,
  Warning = 3,
  Error = 4,
  Critical = 5,
  Off = 6,
}

/** Names by level, also the order in which users see them listed. */
export const LEVEL_NAMES = ['trace', 'debug', 'info', 'warning', 'error', 'critical', 'off'] as const;

/** One letter a level, for %L. */
export const LEVEL_LETTERS = ['T', 'D', 'I', 'W', 'E', 'C', 'O'] as const;

/** The level of that name (`warn` is an alias of `warning`), or undefined. */
export function parseLevel(name: string): Level | undefined {
  const index = (LEVEL_NAMES as readonly string[]).indexOf(name === 'warn' ? 'warning' : name);
  return index < 0 ? undefined : (index as Level);
}
