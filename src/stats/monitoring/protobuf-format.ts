// The protobuf exposition format: io.prometheus.client.MetricFamily messages, each preceded by its length (FACTS §3.6).
// Field numbers are those of io/prometheus/client/metrics.proto.

import { ProtobufWriter } from '../../common/protobuf-writer.js';
import { type Distribution, QUANTILES } from '../histograms/distribution.js';
import type { Pieces } from '../render/pieces.js';
import type { Tag } from '../tags.js';
import type { FamilyHead, HistogramSample, MonitoringFormat } from './format.js';
import { labelsOf } from './names.js';
import { nativeHistogram } from './native-histogram.js';

export interface ProtobufFormatOptions {
  readonly histograms: 'cumulative' | 'summary' | 'native';
  /** Limit of a native histogram. */
  readonly maxBuckets: number;
}

const enum FamilyField {
  Name = 1,
  Type = 3,
  Metric = 4,
}

const enum MetricField {
  Label = 1,
  Gauge = 2,
  Counter = 3,
  Summary = 4,
  Histogram = 7,
}

/** Fields of LabelPair; a Quantile's fields have the same numbers. */
const enum LabelField {
  Name = 1,
  Value = 2,
}

/** Field of Counter and Gauge. */
const VALUE_FIELD = 1;

/** Fields of Summary; the first two also of Histogram. */
const enum SummaryField {
  Count = 1,
  Sum = 2,
  Quantile = 3,
}

const enum HistogramField {
  Bucket = 3,
  Schema = 5,
  ZeroThreshold = 6,
  ZeroCount = 7,
  PositiveSpan = 12,
  PositiveDelta = 13,
}

const enum BucketField {
  CumulativeCount = 1,
  UpperBound = 2,
}

const enum SpanField {
  Offset = 1,
  Length = 2,
}

const LENGTH_DELIMITED = 2;

const TYPE_NUMBERS = { counter: 0, gauge: 1, summary: 2, histogram: 4 } as const;

export class ProtobufFormat implements MonitoringFormat {
  readonly needsBytes = true;
  readonly #options: ProtobufFormatOptions;
  #lastTags: readonly Tag[] | undefined;
  #lastOwn = '';
  readonly #labels = new ProtobufWriter();
  readonly #body = new ProtobufWriter();
  readonly #part = new ProtobufWriter();

  constructor(options: ProtobufFormatOptions) {
    this.#options = options;
  }

  putHead(out: Pieces, { name, type }: FamilyHead, bytes: number): void {
    const head = this.#part;
    head.clear();
    head.string(FamilyField.Name, name);
    head.number(FamilyField.Type, TYPE_NUMBERS[type]);
    putVarint(out, head.length + bytes);
    head.putTo(out);
  }

  putValue(out: Pieces, { type }: FamilyHead, tags: readonly Tag[], value: number): void {
    this.#body.clear();
    this.#body.double(VALUE_FIELD, value);
    this.#put(out, tags, type === 'counter' ? MetricField.Counter : MetricField.Gauge);
  }

  putText(out: Pieces, _family: FamilyHead, tags: readonly Tag[], text: string): void {
    this.#body.clear();
    this.#body.double(VALUE_FIELD, 0);
    const labels = [...labelsOf(tags, 'text_value'), { name: 'text_value', value: text }];
    this.#put(out, labels, MetricField.Gauge);
  }

  putHistogram(out: Pieces, { type }: FamilyHead, tags: readonly Tag[], sample: HistogramSample): void {
    const { value, bounds, scale } = sample;
    const samples = type === 'summary' ? value?.interval : value?.cumulative;
    this.#body.clear();
    this.#addCountAndSum(samples, scale);
    if (type === 'summary') this.#addQuantiles(samples, scale);
    else if (this.#options.histograms === 'native') this.#addNative(samples, scale, this.#options.maxBuckets);
    else this.#addBuckets(samples, bounds, scale);
    if (type === 'summary') this.#put(out, tags, MetricField.Summary, 'quantile');
    else this.#put(out, tags, MetricField.Histogram, 'le');
  }

  /** Writes a metric with these labels and the message in `#body` as field `field`. `own`: see labelsOf(). */
  #put(out: Pieces, tags: readonly Tag[], field: MetricField, own = ''): void {
    // Field numbers are below 16: tags take one byte.
    const labels = this.#labelPairs(tags, own);
    const body = this.#body;
    out.putByte((FamilyField.Metric << 3) | LENGTH_DELIMITED);
    putVarint(out, labels.length + 1 + varintBytes(body.length) + body.length);
    labels.putTo(out);
    out.putByte((field << 3) | LENGTH_DELIMITED);
    putVarint(out, body.length);
    body.putTo(out);
  }

  #addCountAndSum(samples: Distribution | undefined, scale: number): void {
    this.#body.number(SummaryField.Count, samples?.count() ?? 0);
    this.#body.double(SummaryField.Sum, (samples?.sum() ?? 0) / scale);
  }

  #addQuantiles(samples: Distribution | undefined, scale: number): void {
    const values = samples?.quantiles(QUANTILES);
    QUANTILES.forEach((share, i) => {
      const part = this.#part;
      part.clear();
      part.double(LabelField.Name, share);
      part.double(LabelField.Value, (values?.[i] ?? Number.NaN) / scale);
      this.#body.message(SummaryField.Quantile, part);
    });
  }

  #addBuckets(samples: Distribution | undefined, bounds: readonly number[], scale: number): void {
    const counts = samples?.countsBelow(bounds.map((bound) => bound * scale));
    bounds.forEach((bound, i) => {
      const part = this.#part;
      part.clear();
      part.number(BucketField.CumulativeCount, counts?.[i] ?? 0);
      part.double(BucketField.UpperBound, bound);
      this.#body.message(HistogramField.Bucket, part);
    });
  }

  #addNative(samples: Distribution | undefined, scale: number, maxBuckets: number): void {
    const body = this.#body;
    const { schema, zeroThreshold, zeroCount, spans, deltas } = nativeHistogram(samples, scale, maxBuckets);
    body.signed(HistogramField.Schema, schema);
    body.double(HistogramField.ZeroThreshold, zeroThreshold);
    body.number(HistogramField.ZeroCount, zeroCount);
    for (const { offset, length } of spans) {
      const part = this.#part;
      part.clear();
      part.signed(SpanField.Offset, offset);
      part.number(SpanField.Length, length);
      body.message(HistogramField.PositiveSpan, part);
    }
    for (const delta of deltas) body.signed(HistogramField.PositiveDelta, delta);
  }

  /** Encodes labels. Stats of a scope often share their list of tags, which is then encoded once. */
  #labelPairs(tags: readonly Tag[], own: string): ProtobufWriter {
    const labels = this.#labels;
    if (tags === this.#lastTags && own === this.#lastOwn) return labels;
    this.#lastTags = tags;
    this.#lastOwn = own;
    labels.clear();
    for (const { name, value } of labelsOf(tags, own)) {
      const part = this.#part;
      part.clear();
      part.string(LabelField.Name, name);
      part.string(LabelField.Value, value);
      labels.message(MetricField.Label, part);
    }
    return labels;
  }
}

function putVarint(out: Pieces, value: number): void {
  for (; value >= 128; value = Math.floor(value / 128)) out.putByte((value % 128) | 128);
  out.putByte(value);
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (; value >= 128; value = Math.floor(value / 128)) bytes++;
  return bytes;
}
