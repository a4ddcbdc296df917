// The interface of loggers: the part of pino's interface that Baton and its extensions use.

import type { MessageLevel } from './levels.js';

/** Values that are logged with a message. */
export interface LogFields {
  /** An exception. Its stack follows the message, or is a member of the JSON record. */
  readonly err: unknown;
}

/** Logs a message. If the level is disabled, it costs one call of an empty function. */
export interface LogMethod {
  (message: string): void;
  (fields: LogFields, message: string): void;
}

/** Writes the messages of one component or one file. It is a child of the thread's pino logger. */
export interface Logger extends Readonly<Record<MessageLevel, LogMethod>> {
  /** The name in log lines: the component, or the file with fine-grain logging. */
  readonly name: string;
  /** Whether debug() writes anything: for messages that are costly to build. */
  readonly isDebug: boolean;
  isLevelEnabled(level: MessageLevel): boolean;
}
