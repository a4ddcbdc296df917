// Waiting for a condition instead of sleeping: tests say what they wait for, and learn what was missing.

/** How long a test waits for something that should happen at once; generous, because the machine may be busy. */
export const DEFAULT_DEADLINE_MS = 40_000;

const POLL_MS = 10;

export interface WaitOptions {
  deadlineMs?: number;
  /** What is awaited, for the error message. */
  what?: string;
}

/**
 * Calls `condition` until it gives something truthy, and returns that. An exception counts as "not yet"; the last one is
 * the cause of the Error thrown at the deadline.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  { deadlineMs = DEFAULT_DEADLINE_MS, what = condition.toString() }: WaitOptions = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const end = performance.now() + deadlineMs;
  let lastError: unknown;
  for (;;) {
    try {
      const value = await condition();
      if (value) return value as NonNullable<Exclude<T, false>>;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() > end) {
      throw new Error(`still waiting after ${deadlineMs} ms for: ${what}`, { cause: lastError });
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** The promise's value, or an Error that names `what` when it takes longer than the deadline. */
export async function withDeadline<T>(promise: Promise<T>, what: string, deadlineMs = DEFAULT_DEADLINE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`still waiting after ${deadlineMs} ms for: ${what}`)), deadlineMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
