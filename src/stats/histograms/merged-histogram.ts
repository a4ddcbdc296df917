// Merges the histograms of all threads: the primary merges at each flush, and any thread reads the result.
//
// A merged record holds only bins that were ever hit, each with its count since start and its count in the last interval.

import {
  DECADE_HEAD,
  HistogramRecord,
  MERGED_BINS,
  MERGED_USED_WORD,
  RANGE_MASK,
  RANGE_SHIFT,
  RecordType,
  TYPE_MASK,
} from '../memory/format.js';
import type { StatsMemory } from '../memory/memory.js';
import type { RangeView } from '../memory/range.js';
import { BINS, BINS_PER_DECADE, DECADES, DIGIT_BINS } from './bins.js';
import { Distribution } from './distribution.js';

/** A histogram as readers see it. */
export interface HistogramValue {
  /** Samples between the last two flushes. */
  readonly interval: Distribution;
  /** Samples since start. */
  readonly cumulative: Distribution;
}

/** The primary's state of a histogram between flushes. */
export class MergedHistogram {
  /** The record in the primary's range; 0 before the first merge. */
  place = 0;
  /** Number of merged samples of all threads. */
  count = 0;
  /** Whether the last interval had samples. */
  hasInterval = false;
}

export class HistogramMerger {
  readonly #memory: StatsMemory;
  readonly #dense = new Float64Array(BINS);
  readonly #bins: number[] = [];

  constructor(memory: StatsMemory) {
    this.#memory = memory;
  }

  /** Merges the histograms at these places, one per thread (0: none), and begins a new interval. */
  merge(places: ArrayLike<number>, merged: MergedHistogram): void {
    let count = 0;
    for (let thread = 0; thread < places.length; thread++) {
      const place = places[thread]!;
      if (place !== 0) count += this.#memory.ranges[thread]!.slot(place, HistogramRecord.Count);
    }
    // The remembered count is the sum of the bins: a sample whose bin was not visible yet is merged the next time.
    if (count === merged.count && !merged.hasInterval) return;
    for (let thread = 0; thread < places.length; thread++) {
      if (places[thread] !== 0) this.#gather(this.#memory.ranges[thread]!, places[thread]!);
    }
    this.#bins.sort(ascending);
    this.#write(merged);
    for (const bin of this.#bins) this.#dense[bin] = 0;
    this.#bins.length = 0;
  }

  /** Frees the merged record. */
  drop(merged: MergedHistogram): void {
    if (merged.place !== 0) this.#memory.own.range.free(merged.place);
    merged.place = 0;
    merged.count = 0;
    merged.hasInterval = false;
  }

  #gather(view: RangeView, place: number): void {
    for (let digit = 0; digit < 10; digit++) {
      const count = view.slot(place, HistogramRecord.Digits + digit);
      if (count !== 0) this.#put(DIGIT_BINS[digit]!, count);
    }
    for (let decade = 0; decade < DECADES; decade++) {
      const at = view.slot(place, HistogramRecord.Decades + decade);
      if (at === 0) continue;
      const slots = view.slots[at >>> RANGE_SHIFT]!;
      const first = (at & RANGE_MASK) + DECADE_HEAD;
      for (let step = 0; step < BINS_PER_DECADE; step++) {
        const count = slots[first + step]!;
        if (count !== 0) this.#put(1 + decade * BINS_PER_DECADE + step, count);
      }
    }
  }

  #put(bin: number, count: number): void {
    if (this.#dense[bin] === 0) this.#bins.push(bin);
    this.#dense[bin]! += count;
  }

  #write(merged: MergedHistogram): void {
    const own = this.#memory.own.range;
    const bins = this.#bins;
    const before = merged.place === 0 ? undefined : readMerged(own, merged.place);
    let place = merged.place;
    const needed = MERGED_BINS + bins.length * 3;
    if (place === 0 || own.size(place) < needed)
      place = this.#memory.newRecord(MERGED_BINS + 3 * capacityFor(bins.length), RecordType.Merged);
    else own.begin(place);
    let total = 0;
    let changed = false;
    let old = 0;
    own.setWord(place, MERGED_USED_WORD, bins.length);
    for (let i = 0; i < bins.length; i++) {
      const bin = bins[i]!;
      const count = this.#dense[bin]!;
      let oldCount = 0;
      if (before !== undefined && before.cumulative.bins[old] === bin) oldCount = before.cumulative.counts[old++]!;
      own.setSlot(place, MERGED_BINS + i * 3, bin);
      own.setSlot(place, MERGED_BINS + i * 3 + 1, count);
      own.setSlot(place, MERGED_BINS + i * 3 + 2, count - oldCount);
      total += count;
      if (count !== oldCount) changed = true;
    }
    own.commit(place);
    if (merged.place !== 0 && merged.place !== place) own.free(merged.place);
    merged.place = place;
    merged.count = total;
    merged.hasInterval = changed;
  }
}

/** Returns the merged histogram at a place of the primary's range; undefined while it is written, or after it was freed. */
export function readMerged(view: RangeView, place: number): HistogramValue | undefined {
  const tag = view.tag(place);
  if ((tag & TYPE_MASK) !== RecordType.Merged) return undefined;
  const used = view.word(place, MERGED_USED_WORD);
  const bins: number[] = [];
  const counts: number[] = [];
  const intervalBins: number[] = [];
  const intervalCounts: number[] = [];
  for (let i = 0; i < used; i++) {
    const bin = view.slot(place, MERGED_BINS + i * 3);
    const interval = view.slot(place, MERGED_BINS + i * 3 + 2);
    bins.push(bin);
    counts.push(view.slot(place, MERGED_BINS + i * 3 + 1));
    if (interval === 0) continue;
    intervalBins.push(bin);
    intervalCounts.push(interval);
  }
  if (view.tag(place) !== tag) return undefined;
  return { interval: new Distribution(intervalBins, intervalCounts), cumulative: new Distribution(bins, counts) };
}

/** Returns the capacity for a number of bins, in steps, so that freed records can be reused. */
function capacityFor(bins: number): number {
  let capacity = 8;
  while (capacity < bins) capacity *= 2;
  return capacity;
}

function ascending(a: number, b: number): number {
  return a - b;
}
