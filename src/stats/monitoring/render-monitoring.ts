// The monitoring answer: counters, gauges, text readouts if they are asked for, histograms; each kind family by family.
//
// A family's metrics lie in as many scopes. Metrics of some families are therefore made together, scope by scope, and sent in
// the order of families.

import { Kind } from '../layout.js';
import type { StatsReader } from '../read/reader.js';
import type { StatsQuery } from '../read/selection.js';
import { Pieces } from '../render/pieces.js';
import { type Families, groupFamilies, TYPES } from './families.js';
import type { FamilyType, MonitoringFormat } from './format.js';
import { MetricBatch } from './metric-batch.js';
import { ProtobufFormat } from './protobuf-format.js';
import { TextFormat } from './text-format.js';

/** How histograms are shown: with their buckets, as quantiles of the last interval, or as native histograms. */
export type MonitoringHistograms = 'cumulative' | 'summary' | 'native';

export interface MonitoringOptions extends StatsQuery {
  readonly isProtobuf: boolean;
  readonly histograms: MonitoringHistograms;
  /** Of a native histogram. */
  readonly maxBuckets: number;
  readonly textReadouts: boolean;
}

/** Native histograms are had in protobuf only: asking for them in text is the caller's mistake. */
export function* renderMonitoring(reader: StatsReader, options: MonitoringOptions): Generator<Uint8Array, void> {
  const format = options.isProtobuf ? new ProtobufFormat(options) : new TextFormat(options);
  const out = new Pieces();
  const made = new Pieces();
  const { type = 'all' } = options;
  const kinds = [Kind.Counter, Kind.Gauge, ...(options.textReadouts ? [Kind.Text] : []), Kind.Histogram];
  for (const kind of kinds) {
    if (type !== 'all' && type !== TYPES[kind]) continue;
    const grouping = groupFamilies(reader, options, kind);
    let step = grouping.next();
    for (; step.done !== true; step = grouping.next()) yield out.take();
    yield* renderFamilies(reader, step.value, kind, typeOf(kind, options), format, made, out);
  }
  const last = out.take();
  if (last.length > 0) yield last;
}

function* renderFamilies(
  reader: StatsReader,
  families: Families,
  kind: Kind,
  type: FamilyType,
  format: MonitoringFormat,
  made: Pieces,
  out: Pieces,
): Generator<Uint8Array, void> {
  const { all } = families;
  const heads = all.map(({ name }) => ({ name, bytes: Buffer.from(name), type }));
  const batch = new MetricBatch(reader, families, heads, kind, format, made);
  for (let rank = 0; rank < all.length; ) {
    const making = batch.makeNext(rank);
    while (making.next().done !== true) yield out.take();
    for (let member = batch.start; member < batch.end; member++) {
      const { start, end } = all[rank]!;
      if (member === start) format.putHead(out, heads[rank]!, format.needsBytes ? batch.bytesOf(start, end) : 0);
      batch.putTo(out, member);
      if (member === end - 1) rank++;
      if (out.isFull) yield out.take();
    }
  }
}

function typeOf(kind: Kind, { histograms }: MonitoringOptions): FamilyType {
  if (kind === Kind.Counter) return 'counter';
  if (kind !== Kind.Histogram) return 'gauge';
  return histograms === 'summary' ? 'summary' : 'histogram';
}
