// Waits for a condition instead of sleeping; the error at the deadline names the condition.

/** How long a test waits for something that should happen at once; generous, because the machine may be busy. */
export const DEFAULT_DEADLINE_MS = 40_000;

const POLL_MS = 10;
/** Long waits poll less often, up to this interval: the polled servers need CPU time too. */
const MAX_POLL_MS = 50;

export interface WaitOptions {
  deadlineMs?: number;
  /** The awaited condition, for the error message. */
  what?: string;
}

/**
 * Calls `condition` until it returns something truthy, and returns that. An exception counts as "not yet"; the last one is the
 * cause of the Error thrown at the deadline. An asynchronous condition is polled at intervals that grow with the time that it
 * takes.
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
    const pause = isAsking ? Math.min(Math.max(waited / 10, POLL_MS), MAX_POLL_MS) : POLL_MS;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Returns the promise's value, or throws an Error that names `what` at the deadline. */
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
