// The JSON form of /stats: one object whose list holds text readouts, counters and gauges, and finally an object with all
// histograms, if there are any.

import { lowerEdge, widthOf } from '../histograms/bins.js';
import { bucketCounts } from '../histograms/bucket-counts.js';
import { type Distribution, QUANTILES } from '../histograms/distribution.js';
import type { HistogramValue } from '../histograms/merged-histogram.js';
import { PERCENT_SCALE } from '../layout.js';
import type { StatsReader } from '../read/reader.js';
import { Pass } from '../read/section.js';
import { Selection } from '../read/selection.js';
import { Pieces } from './pieces.js';
import type { HistogramBuckets, TextOptions } from './render-text.js';

const PERCENTS: readonly number[] = QUANTILES.map((share) => Number((share * 100).toPrecision(12)));
const SUPPORTED = JSON.stringify(PERCENTS);

/** The text before the first histogram and after the last, by `histogramBuckets`. */
const FRAMES = {
  summary: [`{"histograms":{"supported_quantiles":${SUPPORTED},"computed_quantiles":[`, ']}}'],
  detailed: [`{"histograms":{"supported_percentiles":${SUPPORTED},"details":[`, ']}}'],
  cumulative: ['{"histograms":[', ']}'],
  disjoint: ['{"histograms":[', ']}'],
} as const;

/** Renders the answer in pieces, as renderText() does. */
export function* renderJson(reader: StatsReader, options: TextOptions = {}): Generator<Uint8Array, void> {
  const pieces = new Pieces();
  let separator = '{"stats":[';
  for (const pass of [Pass.Texts, Pass.Values]) {
    for (const stats = new Selection(reader, options, pass); stats.next(); ) {
      if (stats.isPaused) {
        yield pieces.take();
        continue;
      }
      const { section, table, index } = stats;
      const value = pass === Pass.Texts ? reader.text(section, table, index) : reader.value(section, table, index);
      pieces.putText(`${separator}{"name":${JSON.stringify(stats.name)},"value":${JSON.stringify(value)}}`);
      separator = ',';
      if (pieces.isFull) yield pieces.take();
    }
  }
  const [opening, closing] = FRAMES[options.histogramBuckets ?? 'summary'];
  let end = separator === ',' ? ']}' : '{"stats":[]}';
  separator += opening;
  for (const histograms = new Selection(reader, options, Pass.Histograms); histograms.next(); ) {
    if (histograms.isPaused) {
      yield pieces.take();
      continue;
    }
    const members = histogramMembers(reader, histograms, options.histogramBuckets);
    pieces.putText(`${separator}${JSON.stringify({ name: histograms.name, ...members })}`);
    separator = ',';
    end = `${closing}]}`;
    if (pieces.isFull) yield pieces.take();
  }
  pieces.putText(end);
  yield pieces.take();
}

function histogramMembers(
  reader: StatsReader,
  { section, table, index }: Selection,
  mode: HistogramBuckets = 'summary',
) {
  const value = reader.histogram(section, table, index);
  const scale = table.units[index] === 'percent' ? PERCENT_SCALE : 1;
  if (mode === 'summary') return { values: quantiles(value, scale) };
  if (mode === 'detailed') {
    return {
      percentiles: quantiles(value, scale),
      totals: bins(value?.cumulative, scale),
      intervals: bins(value?.interval, scale),
    };
  }
  const bounds = reader.bounds(section, table, index);
  const scaled = bounds.map((bound) => bound * scale);
  const counts = value === undefined ? undefined : bucketCounts(value, scaled, mode);
  return {
    buckets: bounds.map((bound, i) => ({
      upper_bound: bound,
      interval: counts?.interval[i] ?? 0,
      cumulative: counts?.cumulative[i] ?? 0,
    })),
  };
}

function quantiles(value: HistogramValue | undefined, scale: number) {
  const interval = value?.interval.quantiles(QUANTILES);
  const cumulative = value?.cumulative.quantiles(QUANTILES);
  // A quantile of an empty distribution is NaN, which JSON writes as null.
  const at = (all: number[] | undefined, i: number) => (all === undefined ? null : all[i]! / scale);
  return QUANTILES.map((_share, i) => ({ interval: at(interval, i), cumulative: at(cumulative, i) }));
}

function bins(distribution: Distribution | undefined, scale: number) {
  return (distribution?.bins ?? []).map((bin, i) => ({
    lower_bound: lowerEdge(bin) / scale,
    width: widthOf(bin) / scale,
    count: distribution!.counts[i],
  }));
}
