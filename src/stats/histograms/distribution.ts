// Computes quantiles, sums, and counts below bounds of samples counted in bins. No I/O.

import { lowerEdge, upperEdge, widthOf } from './bins.js';

/** Default upper bounds. */
export const DEFAULT_BOUNDS: readonly number[] = [
  0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 600000, 1800000, 3600000,
];

/** Quantiles of a detailed summary; the plain text form omits 0.95 and 0.995. */
export const QUANTILES: readonly number[] = [0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1];

/** Samples by bin: ascending bin numbers (bins.ts) and the count of each. */
export class Distribution {
  readonly bins: readonly number[];
  readonly counts: readonly number[];

  constructor(bins: readonly number[], counts: readonly number[]) {
    this.bins = bins;
    this.counts = counts;
  }

  /** Returns the number of samples. */
  count(): number {
    let count = 0;
    for (const n of this.counts) count += n;
    return count;
  }

  /** Returns the sum of all samples, each taken as the harmonic mean of its bin's edges, as Envoy's histogram library does. */
  sum(): number {
    let sum = 0;
    for (let i = 0; i < this.bins.length; i++) {
      const [lower, upper] = [lowerEdge(this.bins[i]!), upperEdge(this.bins[i]!)];
      if (upper > 0) sum += ((2 * lower * upper) / (lower + upper)) * this.counts[i]!;
    }
    return sum;
  }

  /**
   * Returns the samples at the given shares (ascending, 0 to 1) of all samples; NaN for each if there is no sample. At a share q
   * of n samples is sample number ceil(q * n), or the first one. The k samples of a bin divide it into k + 1 equal parts.
   */
  quantiles(shares: readonly number[]): number[] {
    const total = this.count();
    if (total === 0) return shares.map(() => Number.NaN);
    let i = 0;
    let before = 0;
    return shares.map((share) => {
      const number = Math.max(1, Math.min(total, Math.ceil(share * total)));
      while (before + this.counts[i]! < number) before += this.counts[i++]!;
      const bin = this.bins[i]!;
      return lowerEdge(bin) + (widthOf(bin) * (number - before)) / (this.counts[i]! + 1);
    });
  }

  /**
   * Returns how many samples lie at or below each of the ascending bounds. A bin counts if its largest whole number does.
   * This is exact for whole numbers, except in a bin that a bound of three or more digits cuts.
   */
  countsBelow(bounds: readonly number[]): number[] {
    let i = 0;
    let count = 0;
    return bounds.map((bound) => {
      while (i < this.bins.length && largestWhole(this.bins[i]!) <= bound) count += this.counts[i++]!;
      return count;
    });
  }
}

function largestWhole(bin: number): number {
  const lower = lowerEdge(bin);
  return Math.max(lower, upperEdge(bin) - 1);
}
