// Log levels, by the names that the command line, the admin interface and log lines use.

/** In rising order of severity, as shown to users. A logger writes messages of its level and above. */
export const LEVEL_NAMES = ['trace', 'debug', 'info', 'warning', 'error', 'critical', 'off'] as const;

/** Level of a logger. */
export type Level = (typeof LEVEL_NAMES)[number];

/** Level of a message. */
export type MessageLevel = Exclude<Level, 'off'>;

/** pino's numbers for its own levels: tools that read its records show warning as WARN and critical as FATAL. */
export const LEVEL_NUMBERS: Readonly<Record<MessageLevel, number>> = {
  trace: 10,
  debug: 20,
  info: 30,
  warning: 40,
  error: 50,
  critical: 60,
};

/** Returns the level with that name (`warn` is an alias of `warning`), or undefined. */
export function parseLevel(name: string): Level | undefined {
  return LEVEL_NAMES.find((level) => level === (name === 'warn' ? 'warning' : name));
}

/** Returns the level with that number. */
export function levelOfNumber(number: number): MessageLevel {
  return NAMES_BY_NUMBER.get(number)!;
}

const NAMES_BY_NUMBER = new Map(
  (Object.entries(LEVEL_NUMBERS) as [MessageLevel, number][]).map(([level, number]) => [number, level]),
);
