// What can be said of samples that were counted in bins: quantiles, sum, and counts below bounds. Plain arithmetic.

import { lowerEdge, upperEdge } from './bins.js';

/** Upper bounds that counts are given for unless configuration names others. */
export const DEFAULT_BOUNDS: readonly number[] = [
  0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 600000, 1800000, 3600000,
];

/** The quantiles of a detailed summary; the plain text form leaves out 0.95 and 0.995. */
export const QUANTILES: readonly number[] = [0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1];

/** Samples by bin: ascending bin numbers (bins.ts) and how many fell in each. */
export class Distribution {
  readonly bins: readonly number[];
  readonly counts: readonly number[];

  constructor(bins: readonly number[], counts: readonly number[]) {
    this.bins = bins;
    this.counts = counts;
  }

  /** How many samples there are. */
  count(): number {
    let count = 0;
    for (const n of this.counts) count += n;
    return count;
  }

  /** Sum of all samples, each taken as the middle of its bin. */
  sum(): number {
    let sum = 0;
    for (let i = 0; i < this.bins.length; i++) {
      const bin = this.bins[i]!;
      sum += ((lowerEdge(bin) + upperEdge(bin)) / 2) * this.counts[i]!;
    }
    return sum;
  }

  /**
   * The values below which the given shares (ascending, 0 to 1) of the samples lie, interpolated inside a bin; NaN for each
   * when there is no sample. A share that a bin's samples complete gives that bin's upper edge.
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
   * How many samples lie at or below each of the ascending bounds. A bin counts when the largest whole number in it does: for
   * whole numbers this is exact, save for those in the one bin that a bound of three digits or more cuts.
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
