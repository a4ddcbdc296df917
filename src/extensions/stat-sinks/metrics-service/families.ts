// Converts stats to metric families of the metrics service: one family with one metric each.

import type { MetricsServiceConfig } from '../../../config/generated/api.js';
import { type FlushedStat, Kind, PERCENT_SCALE, QUANTILES } from '../../sdk.js';

/** Numbers of io.prometheus.client.MetricType. */
const enum MetricType {
  Counter = 0,
  Gauge = 1,
  Summary = 2,
  Histogram = 4,
}

/** An io.prometheus.client.MetricFamily in plain data. */
export interface MetricFamily {
  readonly name: string;
  readonly type: MetricType;
  readonly metric: readonly [object];
}

export class Families {
  readonly #asDeltas: boolean;
  readonly #asLabels: boolean;
  readonly #summaries: boolean;
  readonly #histograms: boolean;

  constructor(config: MetricsServiceConfig) {
    const mode = config.histogram_emit_mode ?? 'SUMMARY_AND_HISTOGRAM';
    this.#asDeltas = config.report_counters_as_deltas ?? false;
    this.#asLabels = config.emit_tags_as_labels ?? false;
    this.#summaries = mode !== 'HISTOGRAM';
    this.#histograms = mode !== 'SUMMARY';
  }

  /** Converts a counter or a gauge. */
  ofValue(stat: FlushedStat, timestampMs: number): MetricFamily {
    if (stat.kind === Kind.Gauge)
      return this.#family(stat, MetricType.Gauge, timestampMs, { gauge: { value: stat.value } });
    const value = this.#asDeltas ? stat.delta : stat.total;
    return this.#family(stat, MetricType.Counter, timestampMs, { counter: { value } });
  }

  /** Converts a histogram's last interval to a summary, a histogram, or both. */
  ofHistogram(stat: FlushedStat, timestampMs: number): MetricFamily[] {
    const interval = stat.histogram?.interval;
    if (interval === undefined) return [];
    const scale = stat.unit === 'percent' ? PERCENT_SCALE : 1;
    const counts = { sample_count: interval.count(), sample_sum: interval.sum() / scale };
    const families: MetricFamily[] = [];
    if (this.#summaries) {
      const values = interval.quantiles(QUANTILES);
      const quantile = QUANTILES.map((share, i) => ({ quantile: share, value: values[i]! / scale }));
      families.push(this.#family(stat, MetricType.Summary, timestampMs, { summary: { ...counts, quantile } }));
    }
    if (this.#histograms) {
      const { bounds } = stat;
      const below = interval.countsBelow(bounds.map((bound) => bound * scale));
      const bucket = bounds.map((bound, i) => ({ upper_bound: bound, cumulative_count: below[i]! }));
      families.push(this.#family(stat, MetricType.Histogram, timestampMs, { histogram: { ...counts, bucket } }));
    }
    return families;
  }

  #family(stat: FlushedStat, type: MetricType, timestampMs: number, data: object): MetricFamily {
    if (!this.#asLabels) return { name: stat.name, type, metric: [{ ...data, timestamp_ms: timestampMs }] };
    const { name, tags } = stat.tagged;
    return { name, type, metric: [{ label: tags, ...data, timestamp_ms: timestampMs }] };
  }
}
