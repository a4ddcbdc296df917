// Flags for V8's optimizing compiler. They apply to all threads, and to code compiled afterwards.

import { setFlagsFromString } from 'node:v8';

/**
 * Limits the compilation queue of each thread started from now on to one function; V8 requests the others again later. With the
 * default of eight, all four of V8's own threads compile while a worker starts to serve, and leave it a fifth of a core that they
 * share. Measured all on one core: the slowest hundredth of the requests in a worker's first second takes less than half as long,
 * with no fewer requests.
 */
export function limitCompilationQueue(): void {
  setFlagsFromString('--concurrent-recompilation-queue-length=1');
}

/**
 * Raises the limit for inlining: a request passes through hundreds of small functions, and the default (920 bytes of bytecode in
 * a compiled function) is used up halfway. Measured with scripts/bench/data-plane.ts: a request is 9 % cheaper at 4000, 4 % at
 * 2000, and no cheaper above.
 */
export function raiseInliningLimit(): void {
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=4000');
}
