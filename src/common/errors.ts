// Baton's errors: what happened, where, and what to do about it, under a code from one table.

/** Every code, and what it means to a user. Adding one is one line. */
const ERROR_CODES = {
  CONFIG_INVALID: 'the configuration is refused; nothing was changed',
  CONFIG_UNREADABLE: 'a configuration file cannot be read',
  OPTION_INVALID: 'a command line option is refused',
  REGEX_INVALID: 'a regular expression does not compile',
  RUNTIME_LAYER: 'a runtime layer cannot be loaded or watched; its values are left out',
  PROFILE_UNWRITABLE: 'a profile cannot be written to admin.profile_path',
  INSTALLATION_BROKEN: "a file of Baton's own is missing or damaged",
  INTERNAL: "a mistake in Baton, never a user's",
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

/** What else an error can say. */
export interface ErrorDetails {
  /** Where: a configuration path, file:line:column, a listener, a cluster, an option. */
  readonly where?: string;
  /** What to do about it. */
  readonly remedy?: string;
  readonly cause?: unknown;
}

/** An error that a user or an operator is meant to read. */
export class BatonError extends Error {
  readonly code: ErrorCode;
  readonly where: string | undefined;
  readonly remedy: string | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'BatonError';
    this.code = code;
    this.where = details.where;
    this.remedy = details.remedy;
  }

  /** One line: where, what happened, what to do. */
  describe(): string {
    const where = this.where === undefined ? '' : `${this.where}: `;
    const remedy = this.remedy === undefined ? '' : ` (${this.remedy})`;
    return `${where}${this.message}${remedy}`;
  }
}

/** The message of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
