// How V8's optimizing compiler is to treat this process. Flags count for all threads, and for code that is compiled afterwards.

import { setFlagsFromString } from 'node:v8';

/**
 * Lets one function at most wait to be compiled in each thread that starts from now on; V8 asks again for others. With the eight of
 * its default all four of V8's own threads compile while a worker begins to serve, and leave it a fifth of a core that they share
 * with it. Measured all on one core: the slowest hundredth of the requests in a worker's first second takes less than half as long,
 * and there are no fewer of them.
 */
export function compileInTurn(): void {
  setFlagsFromString('--concurrent-recompilation-queue-length=1');
}

/**
 * Lets more functions become part of their callers: the way of a request is hundreds of small ones, and the default (920 bytes
 * of bytecode in a compiled function) is used up halfway. Measured with scripts/bench/data-plane.ts: a request is 9 % cheaper
 * at 4000, 4 % at 2000, and no cheaper above.
 */
export function inlineMore(): void {
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=4000');
}
