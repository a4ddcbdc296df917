// Log-linear bins with two significant decimal digits: the bin of a value, and the edges of a bin.
//
// Bin 0 holds zero and has no width. The others form decades of 90 bins: mantissas 1.0 to 9.9 times a power of ten, each bin
// a tenth of that power wide. So 115 falls in [110, 120), 1234 in [1200, 1300), and 7 in [7, 7.1).

/** Power of ten of the first decade. Smaller values count as zero: the finest recorded unit is a hundredth. */
const MIN_EXPONENT = -2;
/** Number of decades from MIN_EXPONENT; larger values fall in the last bin. */
export const DECADES = 16;
export const BINS_PER_DECADE = 90;
export const BINS = 1 + DECADES * BINS_PER_DECADE;

/** The decade of 1.0 to 9.9, and the decade of 10 to 99. */
const ONES = -MIN_EXPONENT;
export const TENS = ONES + 1;

/** Upper ends of the decades: LIMITS[d] is the first value too large for decade d. */
export const LIMITS: readonly number[] = Array.from({ length: DECADES }, (_, decade) =>
  power(decade + MIN_EXPONENT + 1),
);

/** Ten times the mantissa is value / DIVISORS[decade], or value * FACTORS[decade] where that is exact. */
const DIVISORS: readonly number[] = Array.from({ length: DECADES }, (_, decade) => power(decade + MIN_EXPONENT - 1));
const FACTORS: readonly number[] = Array.from({ length: DECADES }, (_, decade) => power(1 - decade - MIN_EXPONENT));

/** Bins of 1, 2, … 9; [0] is the zero bin. */
export const DIGIT_BINS: readonly number[] = Array.from({ length: 10 }, (_, digit) => binOf(digit));

/** Returns the decade of a value of at least 0.01. */
export function decadeOf(value: number): number {
  let decade = value < 1 ? 0 : value < 100 ? ONES : TENS + 1;
  while (decade < DECADES - 1 && value >= LIMITS[decade]!) decade++;
  return decade;
}

/** Returns the bin within its decade, 0 to 89, of a value of at least 0.01. */
export function stepOf(value: number, decade: number): number {
  // 0.29 * 1000 may be just below 290: a value this close to an edge is taken as the edge.
  const mantissa = decade >= TENS ? value / DIVISORS[decade]! : value * FACTORS[decade]! + 1e-9;
  const step = Math.floor(mantissa) - 10;
  return step < 0 ? 0 : step < BINS_PER_DECADE ? step : BINS_PER_DECADE - 1;
}

/** Returns the bin of a value; negative and invalid numbers count as zero. */
export function binOf(value: number): number {
  if (!(value >= 0.01)) return 0;
  const decade = decadeOf(value);
  return 1 + decade * BINS_PER_DECADE + stepOf(value, decade);
}

/** Returns the lower edge of a bin. */
export function lowerEdge(bin: number): number {
  if (bin === 0) return 0;
  const decade = Math.floor((bin - 1) / BINS_PER_DECADE);
  return scaled(10 + (bin - 1 - decade * BINS_PER_DECADE), decade);
}

/** Returns the upper edge of a bin, which belongs to the next bin. */
export function upperEdge(bin: number): number {
  if (bin === 0) return 0;
  const decade = Math.floor((bin - 1) / BINS_PER_DECADE);
  return scaled(11 + (bin - 1 - decade * BINS_PER_DECADE), decade);
}

/** Returns the width of a bin. */
export function widthOf(bin: number): number {
  if (bin === 0) return 0;
  return scaled(1, Math.floor((bin - 1) / BINS_PER_DECADE));
}

/** Returns tenths of 10^exponent, correctly rounded: divided by a power of ten where the factor is not exact. */
function scaled(tenths: number, decade: number): number {
  const exponent = decade + MIN_EXPONENT - 1;
  return exponent >= 0 ? tenths * power(exponent) : tenths / power(-exponent);
}

function power(exponent: number): number {
  return Number(`1e${exponent}`);
}
