/** Milliseconds that a timer of Node's can take; a longer one would end at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;
