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

/** Several mistakes that were found together; what it says itself is the first. */
export class Mistakes extends BatonError {
  readonly all: readonly unknown[];

  private constructor(all: readonly unknown[]) {
    super('CONFIG_INVALID', messageOf(all[0]), { cause: all[0] });
    this.all = all;
  }

  /** What was thrown, one by one. */
  static of(thrown: unknown): readonly unknown[] {
    return thrown instanceof Mistakes ? thrown.all : [thrown];
  }

  /** Throws them, one as itself; does nothing without any. */
  static throw(mistakes: readonly unknown[]): void {
    if (mistakes.length > 0) throw mistakes.length === 1 ? mistakes[0] : new Mistakes(mistakes);
  }
}

/** What `build` makes of each item. Throws what it has thrown for any of them, together. */
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

/** What each of them builds, under its name and in their order. Throws what they have thrown, together. */
export function buildAll<T extends object>(builders: { readonly [K in keyof T]: () => T[K] }): T {
  const built: Partial<T> = {};
  buildEach(Object.keys(builders) as (keyof T)[], (name) => void (built[name] = builders[name]()));
  return built as T;
}

/** The message of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  if (lacksThreads(thrown)) return TOO_FEW_THREADS;
  return thrown instanceof Error ? thrown.message : String(thrown);
}

const TOO_FEW_THREADS =
  'this process may start too few threads (EAGAIN); raise the limit (ulimit -u, TasksMax=, the pids limit of a container)';

/** Whether the system has refused to start a thread: Node says nothing but EAGAIN then. */
export function lacksThreads(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  return (thrown as NodeJS.ErrnoException).code === 'ERR_WORKER_INIT_FAILED' && thrown.message === 'EAGAIN';
}
