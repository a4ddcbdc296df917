// How a format of the monitoring answer writes a family and its metrics.

import type { HistogramValue } from '../histograms/merged-histogram.js';
import type { Pieces } from '../render/pieces.js';
import type { Tag } from '../tags.js';

export type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary';

/** A family's name and type, and the name's bytes. */
export interface FamilyHead {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly type: FamilyType;
}

/** A histogram with what says how it is read. */
export interface HistogramSample {
  /** Undefined when it was never merged. */
  readonly value: HistogramValue | undefined;
  readonly bounds: readonly number[];
  /** What samples were multiplied with when they were recorded. */
  readonly scale: number;
}

export interface MonitoringFormat {
  /** Whether putHead() has to know the bytes of all the family's metrics. */
  readonly needsBytes: boolean;
  /** What comes before a family's metrics, which take `bytes`. */
  putHead(out: Pieces, family: FamilyHead, bytes: number): void;
  /** A counter or a gauge. */
  putValue(out: Pieces, family: FamilyHead, tags: readonly Tag[], value: number): void;
  /** A text readout: a gauge that is 0, with its text as a label. */
  putText(out: Pieces, family: FamilyHead, tags: readonly Tag[], text: string): void;
  putHistogram(out: Pieces, family: FamilyHead, tags: readonly Tag[], sample: HistogramSample): void;
}
