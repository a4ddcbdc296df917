// Baton's errors: what happened, where, and what to do about it, with a code from one table.

/** Error codes with their meaning for a user. */
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

/** Optional parts of an error. */
export interface ErrorDetails {
  /** Where: a configuration path, file:line:column, a listener, a cluster, an option. */
  readonly where?: string;
  /** What to do about it. */
  readonly remedy?: string;
  readonly cause?: unknown;
}

/** An error whose message is written for users and operators. */
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

  /** Returns one line: where, what happened, what to do. */
  describe(): string {
    const where = this.where === undefined ? '' : `${this.where}: `;
    const remedy = this.remedy === undefined ? '' : ` (${this.remedy})`;
    return `${where}${this.message}${remedy}`;
  }
}

/** Several errors that were found together. The message is that of the first. */
export class Mistakes extends BatonError {
  readonly all: readonly unknown[];

  private constructor(all: readonly unknown[]) {
    super('CONFIG_INVALID', messageOf(all[0]), { cause: all[0] });
    this.all = all;
  }

  /** Returns the single errors of what was thrown. */
  static of(thrown: unknown): readonly unknown[] {
    return thrown instanceof Mistakes ? thrown.all : [thrown];
  }

  /** Throws the errors: a single one as it is, several as Mistakes. No-op for an empty list. */
  static throw(mistakes: readonly unknown[]): void {
    if (mistakes.length > 0) throw mistakes.length === 1 ? mistakes[0] : new Mistakes(mistakes);
  }
}

/** Builds every item and returns the results. Throws the errors of all items together. */
export function buildEach<T, R>(items: readonly T[], build: (item: T, index: number) => R): R[] {
  const mistakes: unknown[] = [];
  const built: R[] = [];
  items.forEach((item, index) => {
    try {
      built.push(build(item, index));
    } catch (error) {
      mistakes.push(...Mistakes.of(error));
    }
  });
  Mistakes.throw(mistakes);
  return built;
}

/** Calls every builder in order and returns the results under their names. Throws the errors of all builders together. */
export function buildAll<T extends object>(builders: { readonly [K in keyof T]: () => T[K] }): T {
  const built: Partial<T> = {};
  buildEach(Object.keys(builders) as (keyof T)[], (name) => void (built[name] = builders[name]()));
  return built as T;
}

/** Returns the message of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  if (isThreadShortage(thrown)) return THREAD_SHORTAGE;
  return thrown instanceof Error ? thrown.message : String(thrown);
}

const THREAD_SHORTAGE =
  'this process cannot start more threads (EAGAIN); raise the limit (ulimit -u, TasksMax=, the pids limit of a container)';

/** Returns whether the system refused to start a thread. Node's message is only EAGAIN then. */
export function isThreadShortage(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  return (thrown as NodeJS.ErrnoException).code === 'ERR_WORKER_INIT_FAILED' && thrown.message === 'EAGAIN';
}
