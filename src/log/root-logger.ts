// The pino logger of a thread. All other loggers of the thread are its children.

import { type Logger as PinoLogger, pino } from 'pino';
import { LEVEL_NUMBERS, type Level, type MessageLevel } from './levels.js';
import type { LogDestination } from './log-destination.js';
import type { Logger } from './log-methods.js';

/** Makes loggers whose records go to one destination. */
export class RootLogger {
  readonly #root: PinoLogger<MessageLevel, true>;

  constructor(destination: LogDestination) {
    this.#root = pino(
      {
        customLevels: LEVEL_NUMBERS,
        useOnlyCustomLevels: true,
        base: { pid: process.pid },
        timestamp: () => destination.timestamp(),
        mixin: (given, level, logger) => destination.fields(given, level, logger as unknown as Logger),
        serializers: { err: (thrown) => destination.serialize(thrown) },
      },
      destination,
    );
    // Children inherit the listener.
    this.#root.on('level-change', (_level, number, _previousLevel, _previous, logger) => {
      (logger as unknown as { isDebug: boolean }).isDebug = number <= LEVEL_NUMBERS.debug;
    });
  }

  /** Returns a logger with its own level. `properties`: members to add to pino's. */
  child<Properties extends { name: string }>(properties: Properties, level: Level): Logger & Properties {
    const logger = Object.assign(this.#root.child({}), properties) as unknown as Logger & Properties;
    setLevel(logger, level);
    return logger;
  }
}

/** Sets the pino level of a logger. */
export function setLevel(logger: Logger, level: Level): void {
  (logger as unknown as PinoLogger).level = level === 'off' ? 'silent' : level;
}
