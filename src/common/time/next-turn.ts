// Long work on a thread that serves others too is done in steps with a turn of the loop between them.

/** Resolves when everybody else has had a turn of the loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs what yields wherever others may have the thread, and resolves with what it returns. `turn` is awaited between steps. */
export async function inTurns<Result>(steps: Iterator<void, Result>, turn = nextTurn): Promise<Result> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await turn();
  }
}

/** The same with `size` steps in one. */
export function* inBatches<Result>(steps: Iterator<void, Result>, size: number): Generator<void, Result> {
  for (let step = 1; ; step++) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (step % size === 0) yield;
  }
}

/** Runs it in one go, for those who cannot wait for the result. */
export function atOnce<Result>(steps: Iterator<void, Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}
