// Counts the turns of this thread's event loop while a test runs.

import type { Teardown } from '../../e2e/harness/environment.js';

/** Returns a function that returns the number of the current turn. */
export function countTurns(t: Teardown): () => number {
  let turn = 0;
  let isCounting = true;
  const count = () => {
    turn++;
    if (isCounting) setImmediate(count);
  };
  setImmediate(count);
  t.teardown(() => {
    isCounting = false;
  });
  return () => turn;
}
