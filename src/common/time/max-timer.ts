// The longest timer.

/** Milliseconds. A longer timer would fire at once in Node and be refused by native-shim. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
