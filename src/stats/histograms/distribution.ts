// Computes quantiles, sums, and counts below bounds of samples counted in bins. No I/O.

import { lowerEdge, upperEdge } from './bins.js';

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

  /** Returns the sum of all samples, each taken as the middle of its bin. */
  sum(): number {
    let sum = 0;
    for (let i = 0; i < this.bins.length; i++) {
      const bin = this.bins[i]!;
      sum += ((lowerEdge(bin) + upperEdge(bin)) / 2) * this.counts[i]!;
    }
    return sum;
  }

  /**
   * Returns the values below which the given shares (ascending, 0 to 1) of the samples lie, interpolated within bins; NaN
   * for each if there is no sample. If a share ends with a bin's last sample, its value is that bin's upper edge.
   */
  quantiles(shares: readonly number[]): number[] {
    const total = this.count();
    if (total === 0) return shares.map(() => Number.NaN);
    let i = 0;
    while (this.counts[i] === 0) i++;
    let below = 0;
    let through = this.counts[i]!;
    const last = this.bins.length - 1;
    return shares.map((share) => {
      const target = share * total;
      while (i < last && through < target) {
        below = through;
        through += this.counts[++i]!;
      }
      const lower = lowerEdge(this.bins[i]!);
      if (target <= below) return lower;
      const upper = upperEdge(this.bins[i]!);
      return target >= through ? upper : lower + (upper - lower) * ((target - below) / (through - below));
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
