// Decimal numbers in texts that may come from clients.

/** Each text has one reading: a pattern that tries several takes seconds for a long row of digits. */
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/** Returns the value of a decimal number such as -1, .5 or 1e3; NaN for another text. */
export function decimalOf(text: string): number {
  return DECIMAL.test(text) ? Number(text) : Number.NaN;
}
