// The interface of the formats of /stats/prometheus: how they write families and metrics.

import type { HistogramValue } from '../histograms/merged-histogram.js';
import type { Pieces } from '../render/pieces.js';
import type { Tag } from '../tags.js';

export type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary';

/** A family's name, the name's bytes, and its type. */
export interface FamilyHead {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly type: FamilyType;
}

/** A histogram and how to read it. */
export interface HistogramSample {
  /** Undefined if it was never merged. */
  readonly value: HistogramValue | undefined;
  readonly bounds: readonly number[];
  /** The factor by which samples were multiplied when they were recorded. */
  readonly scale: number;
}

export interface MonitoringFormat {
  /** Whether putHead() needs the size of all metrics of the family. */
  readonly needsBytes: boolean;
  /** Writes the head of a family, whose metrics take `bytes`. */
  putHead(out: Pieces, family: FamilyHead, bytes: number): void;
  /** Writes a counter or a gauge. */
  putValue(out: Pieces, family: FamilyHead, tags: readonly Tag[], value: number): void;
  /** Writes a text readout: a gauge of value 0 with its text as a label. */
  putText(out: Pieces, family: FamilyHead, tags: readonly Tag[], text: string): void;
  putHistogram(out: Pieces, family: FamilyHead, tags: readonly Tag[], sample: HistogramSample): void;
}
