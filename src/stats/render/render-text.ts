// The text form of /stats: text readouts, then counters and gauges in one list, then histograms, each in the order of names.

import { lowerEdge, widthOf } from '../histograms/bins.js';
import { bucketCounts } from '../histograms/bucket-counts.js';
import { type Distribution, QUANTILES } from '../histograms/distribution.js';
import type { HistogramValue } from '../histograms/merged-histogram.js';
import { PERCENT_SCALE } from '../layout.js';
import type { StatsReader } from '../read/reader.js';
import { Pass, type Section } from '../read/section.js';
import { Selection, type StatsQuery } from '../read/selection.js';
import { formatGeneral, formatShortest } from './numbers.js';
import { Pieces } from './pieces.js';

export type HistogramBuckets = 'summary' | 'cumulative' | 'disjoint' | 'detailed';

export interface TextOptions extends StatsQuery {
  /** The form of histograms; default 'summary'. */
  readonly histogramBuckets?: HistogramBuckets;
}

/** Quantiles of the summary; the detailed form has QUANTILES. */
const SUMMARY_QUANTILES: readonly number[] = [0, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1];
const NEWLINE = 10;
const COLON = Buffer.from(': ');

/**
 * Renders the answer in pieces of some 32 KiB on demand. A piece is smaller or empty where a long search for the next
 * selected stat pauses. Call reader.refresh() first to see new stats.
 */
export function* renderText(reader: StatsReader, options: TextOptions = {}): Generator<Uint8Array, void> {
  const pieces = new Pieces();
  for (const texts = new Selection(reader, options, Pass.Texts); texts.next(); ) {
    if (texts.isPaused) {
      yield pieces.take();
      continue;
    }
    pieces.putText(`${texts.name}: "${reader.text(texts.section, texts.table, texts.index)}"\n`);
    if (pieces.isFull) yield pieces.take();
  }
  let section: Section | undefined;
  let prefix: Uint8Array = new Uint8Array();
  for (const values = new Selection(reader, options, Pass.Values); values.next(); ) {
    if (values.isPaused) {
      yield pieces.take();
      continue;
    }
    if (values.section !== section) {
      section = values.section;
      prefix = Buffer.from(section.prefix);
    }
    pieces.put(prefix);
    pieces.put(values.table.bytes[values.index]!);
    pieces.put(COLON);
    pieces.putCount(reader.value(section, values.table, values.index));
    pieces.putByte(NEWLINE);
    if (pieces.isFull) yield pieces.take();
  }
  for (const histograms = new Selection(reader, options, Pass.Histograms); histograms.next(); ) {
    if (histograms.isPaused) {
      yield pieces.take();
      continue;
    }
    pieces.putText(`${histograms.name}:${histogramText(reader, histograms, options.histogramBuckets)}\n`);
    if (pieces.isFull) yield pieces.take();
  }
  const last = pieces.take();
  if (last.length > 0) yield last;
}

function histogramText(
  reader: StatsReader,
  { section, table, index }: Selection,
  mode: HistogramBuckets = 'summary',
): string {
  const value = reader.histogram(section, table, index);
  if (value === undefined) return ' No recorded values';
  const scale = table.units[index] === 'percent' ? PERCENT_SCALE : 1;
  if (mode === 'summary') return ` ${quantilesText(value, SUMMARY_QUANTILES, scale)}`;
  if (mode === 'detailed') {
    return (
      `\n  totals=${binsText(value.cumulative, scale)}\n  intervals=${binsText(value.interval, scale)}` +
      `\n  summary=${quantilesText(value, QUANTILES, scale)}`
    );
  }
  const bounds = reader.bounds(section, table, index);
  const scaled = bounds.map((bound) => bound * scale);
  const { interval, cumulative } = bucketCounts(value, scaled, mode);
  return bounds.map((bound, i) => ` B${formatGeneral(bound, 6)}(${interval[i]},${cumulative[i]})`).join('');
}

function quantilesText(value: HistogramValue, shares: readonly number[], scale: number): string {
  const interval = value.interval.quantiles(shares);
  const cumulative = value.cumulative.quantiles(shares);
  return shares
    .map((share, i) => {
      const values = `${formatShortest(interval[i]! / scale)},${formatShortest(cumulative[i]! / scale)}`;
      return `P${formatGeneral(share * 100, 6)}(${values})`;
    })
    .join(' ');
}

function binsText(distribution: Distribution, scale: number): string {
  return distribution.bins
    .map((bin, i) => {
      const lower = formatShortest(lowerEdge(bin) / scale);
      return ` ${lower},${formatShortest(widthOf(bin) / scale)}:${distribution.counts[i]}`;
    })
    .join(',')
    .trimStart();
}
