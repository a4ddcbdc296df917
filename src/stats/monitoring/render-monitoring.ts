// Renders /stats/prometheus: counters, gauges, text readouts if requested, and histograms; each kind family by family.
//
// A family's metrics are spread over many scopes. The metrics of several families are therefore rendered together, scope by
// scope, and sent in the order of families.

import { Kind } from '../layout.js';
import type { StatsReader } from '../read/reader.js';
import type { StatsQuery } from '../read/selection.js';
import { Pieces } from '../render/pieces.js';
import { type Families, groupFamilies, TYPES } from './families.js';
import type { FamilyType } from './format.js';
import { type FamilyGroup, MetricBatch, type MetricSource } from './metric-batch.js';
import { ProtobufFormat } from './protobuf-format.js';
import { TextFormat } from './text-format.js';

/** The form of histograms: buckets, quantiles of the last interval, or native histograms. */
export type MonitoringHistograms = 'cumulative' | 'summary' | 'native';

export interface MonitoringOptions extends StatsQuery {
  readonly isProtobuf: boolean;
  readonly histograms: MonitoringHistograms;
  /** Limit of a native histogram. */
  readonly maxBuckets: number;
  readonly textReadouts: boolean;
}

/** Renders the answer. The caller must not request native histograms in text: only protobuf has them. */
export function* renderMonitoring(reader: StatsReader, options: MonitoringOptions): Generator<Uint8Array, void> {
  const format = options.isProtobuf ? new ProtobufFormat(options) : new TextFormat(options);
  const out = new Pieces();
  const source = { reader, format, rendered: new Pieces() };
  const { type = 'all' } = options;
  const kinds = [Kind.Counter, Kind.Gauge, ...(options.textReadouts ? [Kind.Text] : []), Kind.Histogram];
  for (const kind of kinds) {
    if (type !== 'all' && type !== TYPES[kind]) continue;
    const grouping = groupFamilies(reader, options, kind);
    let step = grouping.next();
    for (; step.done !== true; step = grouping.next()) yield out.take();
    yield* renderFamilies(source, familyGroup(step.value, kind, options), out);
  }
  const last = out.take();
  if (last.length > 0) yield last;
}

function* renderFamilies(source: MetricSource, group: FamilyGroup, out: Pieces): Generator<Uint8Array, void> {
  const { format } = source;
  const { families, heads } = group;
  const { all } = families;
  const batch = new MetricBatch(source, group);
  for (let rank = 0; rank < all.length; ) {
    const rendering = batch.renderNext(rank);
    while (rendering.next().done !== true) yield out.take();
    for (let member = batch.start; member < batch.end; member++) {
      const { start, end } = all[rank]!;
      if (member === start) format.putHead(out, heads[rank]!, format.needsBytes ? batch.bytesOf(start, end) : 0);
      batch.putTo(out, member);
      if (member === end - 1) rank++;
      if (out.isFull) yield out.take();
    }
  }
}

function familyGroup(families: Families, kind: Kind, options: MonitoringOptions): FamilyGroup {
  const type = typeOf(kind, options);
  return { families, kind, heads: families.all.map(({ name }) => ({ name, bytes: Buffer.from(name), type })) };
}

function typeOf(kind: Kind, { histograms }: MonitoringOptions): FamilyType {
  if (kind === Kind.Counter) return 'counter';
  if (kind !== Kind.Histogram) return 'gauge';
  return histograms === 'summary' ? 'summary' : 'histogram';
}
