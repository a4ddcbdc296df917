// Converts stats to OpenTelemetry metrics: counters to monotonic sums, gauges, and histograms with explicit bounds.

import type { SinkConfig } from '../../../config/generated/api.js';
import { type FlushedStat, type FlushTimes, Kind, PERCENT_SCALE } from '../../sdk.js';

/** Numbers of AggregationTemporality. */
const enum Temporality {
  Delta = 1,
  Cumulative = 2,
}

/** A 64-bit number in the form of protobufjs. */
interface Nanoseconds {
  readonly low: number;
  readonly high: number;
  readonly unsigned: true;
}

interface Names {
  readonly name: string;
  readonly attributes: readonly object[];
}

export class Metrics {
  readonly #prefix: string;
  readonly #asDeltas: boolean;
  readonly #histogramsAsDeltas: boolean;
  readonly #withAttributes: boolean;
  readonly #withTaggedName: boolean;
  readonly #countedSince: Nanoseconds;
  readonly #start: Nanoseconds;
  readonly #previous: Nanoseconds;
  readonly #now: Nanoseconds;

  constructor(config: SinkConfig, times: FlushTimes) {
    this.#prefix = config.prefix ? `${config.prefix}.` : '';
    this.#asDeltas = config.report_counters_as_deltas ?? false;
    this.#histogramsAsDeltas = config.report_histograms_as_deltas ?? false;
    this.#withAttributes = config.emit_tags_as_attributes ?? true;
    this.#withTaggedName = config.use_tag_extracted_name ?? true;
    this.#countedSince = nanoseconds(times.countedSinceMs);
    this.#start = nanoseconds(times.startMs);
    this.#previous = nanoseconds(times.previousMs);
    this.#now = nanoseconds(times.nowMs);
  }

  /** Returns an opentelemetry.proto.metrics.v1.Metric as plain data, or undefined for a delta of 0. */
  ofValue(stat: FlushedStat): object | undefined {
    if (stat.kind === Kind.Gauge) {
      const { name, attributes } = this.#names(stat);
      const point = { attributes, time_unix_nano: this.#now, as_int: stat.value };
      return { name, gauge: { data_points: [point] } };
    }
    const value = this.#asDeltas ? stat.delta : stat.total;
    if (this.#asDeltas && value === 0) return undefined;
    const { name, attributes } = this.#names(stat);
    const point = { attributes, ...this.#span(this.#asDeltas, this.#countedSince), as_int: value };
    const aggregation_temporality = this.#asDeltas ? Temporality.Delta : Temporality.Cumulative;
    return { name, sum: { data_points: [point], aggregation_temporality, is_monotonic: true } };
  }

  /** As ofValue(). */
  ofHistogram(stat: FlushedStat): object | undefined {
    const asDeltas = this.#histogramsAsDeltas;
    const distribution = asDeltas ? stat.histogram?.interval : stat.histogram?.cumulative;
    const count = distribution?.count() ?? 0;
    if (distribution === undefined || (asDeltas && count === 0)) return undefined;
    const { name, attributes } = this.#names(stat);
    const scale = stat.unit === 'percent' ? PERCENT_SCALE : 1;
    const { bounds } = stat;
    const below = distribution.countsBelow(bounds.map((bound) => bound * scale));
    const inside = below.map((all, i) => all - (i === 0 ? 0 : below[i - 1]!));
    const point = {
      attributes,
      ...this.#span(asDeltas, this.#start),
      count,
      sum: distribution.sum() / scale,
      bucket_counts: [...inside, count - (below.at(-1) ?? 0)],
      explicit_bounds: bounds,
    };
    const aggregation_temporality = asDeltas ? Temporality.Delta : Temporality.Cumulative;
    return { name, histogram: { data_points: [point], aggregation_temporality } };
  }

  #span(isDelta: boolean, since: Nanoseconds): { readonly [time: string]: Nanoseconds } {
    return { start_time_unix_nano: isDelta ? this.#previous : since, time_unix_nano: this.#now };
  }

  #names(stat: FlushedStat): Names {
    if (!this.#withAttributes && !this.#withTaggedName) return { name: this.#prefix + stat.name, attributes: [] };
    const { name, tags } = stat.tagged;
    return {
      name: this.#prefix + (this.#withTaggedName ? name : stat.name),
      attributes: this.#withAttributes ? tags.map((tag) => attribute(tag.name, tag.value)) : [],
    };
  }
}

/** Returns an opentelemetry.proto.common.v1.KeyValue as plain data. */
export function attribute(key: string, text: string): object {
  return { key, value: { string_value: text } };
}

function nanoseconds(milliseconds: number): Nanoseconds {
  const nanos = BigInt(milliseconds) * 1_000_000n;
  return { low: Number(BigInt.asIntN(32, nanos)), high: Number(BigInt.asIntN(32, nanos >> 32n)), unsigned: true };
}
