// Long work on a shared thread is split into steps, with a turn of the event loop between them.

/** Resolves in the next turn of the event loop, after other pending work. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs a generator and resolves with its result. Awaits `turn` wherever it yields. */
export async function inTurns<Result>(steps: Iterator<void, Result>, turn = nextTurn): Promise<Result> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await turn();
  }
}

/** Returns the same work with `size` steps in one. */
export function* inBatches<Result>(steps: Iterator<void, Result>, size: number): Generator<void, Result> {
  for (let step = 1; ; step++) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (step % size === 0) yield;
  }
}

/** Runs all steps synchronously, for callers that cannot wait. */
export function runSync<Result>(steps: Iterator<void, Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}
