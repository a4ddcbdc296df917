// All writes of the primary to memory that another thread normally writes, and why that thread does not write at that time.

import { Control, HistogramRecord, NamedRecord, PAGE_SLOTS, RANGE_MASK, RANGE_SHIFT, RecordType } from './format.js';
import type { Block, StatsMemory } from './memory.js';
import type { RangeView } from './range.js';

/** The slots of a block by kind. */
export interface BlockSlots {
  readonly counters: readonly number[];
  readonly gauges: readonly number[];
  readonly histograms: readonly number[];
}

/** A thread's record of a name that traffic created. */
export interface NameRecord {
  readonly thread: number;
  readonly place: number;
}

/**
 * Zeroes a block in every thread's page. Its scope was removed, and all workers run a snapshot without it. Histograms stay
 * in place, empty, for the next scope of the layout.
 */
export function clearBlock({ pages, ranges, threads }: StatsMemory, block: Block, slots: BlockSlots): void {
  const page = pages[block.chunk]!;
  for (let thread = 0; thread < threads; thread++) {
    const first = block.base + thread * PAGE_SLOTS;
    for (const at of slots.counters) page[first + at] = 0;
    for (const at of slots.gauges) page[first + at] = page[first + at + 1] = 0;
    for (const at of slots.histograms) clearHistogram(ranges[thread]!, page[first + at]!);
  }
}

/** Removes the share of a dead thread from the gauges of a block. */
export function clearGauges({ pages }: StatsMemory, block: Block, gauges: readonly number[], thread: number): void {
  const first = block.base + thread * PAGE_SLOTS;
  for (const at of gauges) clearGauge(pages[block.chunk]!, first + at);
}

/** Removes the share of a dead thread from a gauge that traffic created. */
export function clearNamedGauge({ ranges }: StatsMemory, { place, thread }: NameRecord): void {
  const slots = ranges[thread]!.slots[place >>> RANGE_SHIFT]!;
  clearGauge(slots, (place & RANGE_MASK) + NamedRecord.Value);
}

/**
 * Frees a name after its scope was removed and no thread counts there any more. The thread reclaims the record when it next
 * creates a name.
 */
export function freeName(memory: StatsMemory, { place, thread }: NameRecord): void {
  memory.ranges[thread]!.retag(place, RecordType.Free);
  memory.increment(thread, Control.Retired);
}

/** Zeroes a gauge. If it was ever changed, it still counts as changed. */
function clearGauge(slots: Float64Array, at: number): void {
  if (slots[at] === 0 && Object.is(slots[at + 1], 0)) return;
  slots[at] = 0;
  slots[at + 1] = -0;
}

function clearHistogram(range: RangeView, place: number): void {
  if (place === 0) return;
  const slots = range.slots[place >>> RANGE_SHIFT]!;
  const at = place & RANGE_MASK;
  slots.fill(0, at + HistogramRecord.Count, at + HistogramRecord.Decades);
  for (let i = at + HistogramRecord.Decades; i < at + range.size(place); i++) {
    const decade = slots[i]!;
    if (decade === 0) continue;
    const first = decade & RANGE_MASK;
    range.slots[decade >>> RANGE_SHIFT]!.fill(0, first + 1, first + range.size(decade));
  }
}
