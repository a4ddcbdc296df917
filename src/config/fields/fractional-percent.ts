// The value of a FractionalPercent.

import type { FractionalPercent } from '../generated/api.js';

/** Returns the share as a number: 0 for none, 1 for all. A configured numerator may be larger than its denominator. */
export function shareOf({ denominator = 'HUNDRED', numerator = 0 }: FractionalPercent = {}): number {
  return numerator / DENOMINATORS[denominator];
}

const DENOMINATORS = { HUNDRED: 100, TEN_THOUSAND: 10_000, MILLION: 1_000_000 } as const;
