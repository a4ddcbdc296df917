// How long a timer can run.

/** Milliseconds that a timer of Node's, or one of native-shim's, can take; a longer one would end at once, or be refused. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;
