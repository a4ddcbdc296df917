// Draws a histogram from its bins, and computes quantiles.

import { svg } from './dom.js';
import { countText, figureText } from './numbers.js';

/** A bin as in the detailed JSON form of stats; lists are in ascending order. */
export interface Bin {
  readonly lower_bound: number;
  readonly width: number;
  readonly count: number;
}

const WIDTH = 240;
const HEIGHT = 40;
const BARS = 40;
/** Minimum number of decades, so that a single value does not fill the picture. */
const MIN_DECADES = 1;

/** Merges the bins of several histograms. */
export function mergeBins(lists: Iterable<readonly Bin[]>): Bin[] {
  const merged = new Map<number, Bin>();
  for (const bins of lists) {
    for (const bin of bins) {
      const count = bin.count + (merged.get(bin.lower_bound)?.count ?? 0);
      merged.set(bin.lower_bound, { ...bin, count });
    }
  }
  return [...merged.values()].sort((a, b) => a.lower_bound - b.lower_bound);
}

export function samples(bins: readonly Bin[]): number {
  return bins.reduce((sum, { count }) => sum + count, 0);
}

/** Returns the value below which `share` of the samples lies; undefined without samples. */
export function quantile(bins: readonly Bin[], share: number): number | undefined {
  const target = share * samples(bins);
  let below = 0;
  for (const { lower_bound: lower, width, count } of bins) {
    if (count > 0 && below + count >= target) return lower + width * ((target - below) / count);
    below += count;
  }
  return undefined;
}

/** Draws bars on a logarithmic scale of values. Returns undefined without samples. */
export function drawHistogram(bins: readonly Bin[]): SVGSVGElement | undefined {
  const filled = bins.filter(({ count }) => count > 0);
  const [first, last] = [filled[0], filled.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const bars = barsOf(filled);
  const maxCount = Math.max(...bars.map((bar) => bar?.count ?? 0));
  const range = rangeText(first.lower_bound, last.lower_bound + last.width);
  return svg(
    'svg',
    {
      class: 'histogram',
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': `${countText(samples(filled))} samples, ${range}`,
    },
    ...bars.map((bar, index) => bar && drawBar(bar, index, maxCount)),
  );
}

/** The samples of one bar, and the range of their values. */
interface Bar {
  readonly from: number;
  to: number;
  count: number;
}

/** Groups bins into BARS bars of equal width, some of which have no samples. Zero has its own bar. */
function barsOf(filled: readonly Bin[]): (Bar | undefined)[] {
  const bars: (Bar | undefined)[] = Array.from({ length: BARS });
  const place = scaleOf(filled);
  for (const { lower_bound: from, width, count } of filled) {
    const to = from + width;
    const bar = (bars[place(from)] ??= { from, to, count: 0 });
    bar.to = to;
    bar.count += count;
  }
  return bars;
}

/** Returns a function from a bin's lower end to the index of its bar. */
function scaleOf(filled: readonly Bin[]): (from: number) => number {
  const hasZero = filled[0]!.lower_bound === 0;
  const least = filled[hasZero ? 1 : 0]?.lower_bound ?? 1;
  let low = Math.log10(least);
  let high = Math.log10(Math.max(filled.at(-1)!.lower_bound, least));
  const missing = MIN_DECADES - (high - low);
  if (missing > 0) {
    low -= missing / 2;
    high += missing / 2;
  }
  const start = hasZero ? 2 : 0;
  return (from) =>
    from === 0 ? 0 : start + Math.round(((Math.log10(from) - low) / (high - low)) * (BARS - 1 - start));
}

function drawBar({ from, to, count }: Bar, index: number, maxCount: number): SVGRectElement {
  const step = WIDTH / BARS;
  const height = Math.max((count / maxCount) * (HEIGHT - 2), 1);
  const place = { x: (index * step).toFixed(1), y: (HEIGHT - height).toFixed(1) };
  const size = { width: (step - 1).toFixed(1), height: height.toFixed(1) };
  return svg('rect', { ...place, ...size }, svg('title', {}, `${rangeText(from, to)}: ${countText(count)}`));
}

function rangeText(from: number, to: number): string {
  return from === to ? figureText(from) : `${figureText(from)} to ${figureText(to)}`;
}
