// Shares as configuration writes them, as numbers from 0 to 1.

import type { FractionalPercent } from './generated/api.js';

const DENOMINATORS = { HUNDRED: 100, TEN_THOUSAND: 10_000, MILLION: 1_000_000 } as const;

/** A share from 0 to 1; not set means 0, as in protobuf. */
export function fractionOf(percent: FractionalPercent | undefined): number {
  return Math.min(1, (percent?.numerator ?? 0) / DENOMINATORS[percent?.denominator ?? 'HUNDRED']);
}
