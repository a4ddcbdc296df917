// Waiting for a condition instead of sleeping: tests say what they wait for, and learn what was missing.

/** How long a test waits for something that should happen at once; generous, because the machine may be busy. */
export const DEFAULT_DEADLINE_MS = 40_000;

const POLL_MS = 10;
/** Whoever waits for long asks less often, up to this: servers that are asked need the machine too. */
const LONGEST_POLL_MS = 50;

export interface WaitOptions {
  deadlineMs?: number;
  /** What is awaited, for the error message. */
  what?: string;
}

/**
 * Calls `condition` until it gives something truthy, and returns that. An exception counts as "not yet"; the last one is
 * the cause of the Error thrown at the deadline. A condition that gives a promise, because it asks somebody, is called at intervals
 * that grow with the time that it takes.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  { deadlineMs = DEFAULT_DEADLINE_MS, what = condition.toString() }: WaitOptions = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const begun = performance.now();
  let lastError: unknown;
  for (;;) {
    let isAsking = false;
    try {
      const called = condition();
      isAsking = called instanceof Promise;
      const value = await called;
      if (value) return value as NonNullable<Exclude<T, false>>;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    const waited = performance.now() - begun;
    if (waited > deadlineMs) {
      throw new Error(`still waiting after ${deadlineMs} ms for: ${what}`, { cause: lastError });
    }
    const pause = isAsking ? Math.min(Math.max(waited / 10, POLL_MS), LONGEST_POLL_MS) : POLL_MS;
    await new Promise((resolve) => setTimeout(resolve, pause));
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
