// Time limits for promises.

/**
 * Resolves as `promise` does. Rejects with an Error with the message `what` after `milliseconds`. The timer does not keep
 * the process alive.
 */
export async function withinMs<T>(promise: Promise<T>, milliseconds: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(what)), milliseconds);
    timer.unref();
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Resolves when `work` resolves or after `milliseconds`; a later failure of `work` is ignored. Rejects if `work` rejects
 * before.
 */
export async function atMostMs(work: Promise<unknown>, milliseconds: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
