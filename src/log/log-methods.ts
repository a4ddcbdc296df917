// What a logger can do: the part of pino's loggers that Baton and its extensions use.

import type { MessageLevel } from './levels.js';

/** What is logged beside a message. */
export interface LogFields {
  /** What was thrown: its stack follows the message, or is a member of a record in JSON form. */
  readonly err: unknown;
}

/** Logs a message. It costs one call of an empty function where the level is disabled. */
export interface LogMethod {
  (message: string): void;
  (fields: LogFields, message: string): void;
}

/** Writes the messages of one component, or of one file. It is a child of the pino logger of its thread. */
export interface Logger extends Readonly<Record<MessageLevel, LogMethod>> {
  /** What lines call it: the component, or the file with fine-grain logging. */
  readonly name: string;
  /** For messages that are costly to make: whether debug() writes anything. */
  readonly isDebug: boolean;
  isLevelEnabled(level: MessageLevel): boolean;
}
