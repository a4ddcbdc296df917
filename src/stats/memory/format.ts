// The layout of stats in shared memory: pages with the slots of scopes, and a range of records per thread.
//
//   page chunk   [ primary | worker 0 | … | worker n-1 | view ]      PAGE_SLOTS Float64 each, one chunk index for all threads
//   range chunk  [ record | record | … ]                              one list of chunks a thread, written by that thread only
//   control      [ thread 0 | thread 1 | … ]                          CONTROL_WORDS Int32 each
//
// In the view page, which the primary writes, a counter's slot holds the baseline of the last reset, a histogram's slot the
// place of its merged record in the primary's range, and a text readout's slot the place of its text.
//
// Each word has one writer and many readers. A thread writes its page, its range and the first half of its control words.
// The primary writes the view, the second half of all control words, and NamedRecord.View in all ranges. foreign-writes.ts
// contains all exceptions; the other thread does not write there at that time.
//
// Untouched memory costs only address space, so chunks are large.

/** Slots of one thread's page in a chunk. A block lies within one chunk. */
export const PAGE_SLOTS = 16384;
/** Unused slots at the start of a page, so that two threads never write the same cache line. */
export const PAGE_GUARD = 8;
export const SLOT_BYTES = 8;

/** A place in a range is chunk << RANGE_SHIFT | slot; 0 means none. */
export const RANGE_SHIFT = 21;
export const RANGE_SLOTS = 1 << RANGE_SHIFT;
export const RANGE_MASK = RANGE_SLOTS - 1;
export const RANGE_GUARD = 8;

/** Int32 words of a thread's control block: the thread writes the first half, the primary the second. */
export const CONTROL_WORDS = 64;
export const enum Control {
  /** The first place of the range without a record. */
  End = 0,
  /** Counts changes of the names in the range. */
  Names = 1,
  /** Samples and names that were lost for lack of room. */
  Dropped = 2,
  /** Names that were looked up as strings. */
  Lookups = 3,
  /** Counts how often the primary has freed names in this range. */
  Retired = 32,
  /** Counts removed scopes; in the primary's control words. */
  Removed = 33,
}

/**
 * Every record begins with two Int32: its tag (generation << 4 | type), and its size in slots with the type it has when in
 * use. If a reader finds the same tag before and after reading, the record did not change meanwhile.
 */
export const enum RecordType {
  Free = 0,
  /** Being written. */
  Busy = 1,
  Scope = 2,
  Histogram = 3,
  Decade = 4,
  Named = 5,
  Merged = 6,
  Text = 7,
}
export const TYPE_MASK = 15;
export const GENERATION_STEP = 16;

/** A scope in the directory: Int32 words of the record. */
export const enum ScopeRecord {
  Layout = 2,
  Flags = 3,
  Chunk = 4,
  Base = 5,
  PrefixBytes = 6,
}
/** Slot of a scope's record at which the prefix begins. */
export const SCOPE_TEXT = 4;
export const enum ScopeFlag {
  Hidden = 1,
}

/** A name that traffic created: slots of the record. */
export const enum NamedRecord {
  /** Counter: value. Gauge: increments. Histogram: place of its Histogram record. */
  Value = 1,
  /** Gauge: decrements. */
  Downs = 2,
  /** Written by the primary. Counter: baseline. Histogram: place of the merged record. */
  View = 3,
  /** Int32 words: the kind, the byte lengths of prefix and name, and the unit. */
  KindWord = 8,
  PrefixBytesWord = 9,
  NameBytesWord = 10,
  UnitWord = 11,
}
/** Slot of a Named record at which prefix and name begin. */
export const NAMED_TEXT = 6;

/** A thread's histogram: slots of the record. */
export const enum HistogramRecord {
  /** Number of samples. */
  Count = 1,
  /** Counts of the whole numbers 0 to 9. */
  Digits = 2,
  /** Places of the decades, smallest exponent first. */
  Decades = 12,
}
/** Slots before the 90 counts of a decade. */
export const DECADE_HEAD = 1;

/** Int32 word of a Merged record that holds its number of bins. */
export const MERGED_USED_WORD = 2;
/** Slot at which the bins begin, three slots each: bin, count since start, count in the last interval. */
export const MERGED_BINS = 2;

/** Int32 word of a Text record that holds its length in bytes, and the slot at which the text begins. */
export const TEXT_BYTES_WORD = 2;
export const TEXT_BYTES = 2;

/** Returns the bytes of a chunk for `threads` threads and the view. */
export function pageChunkBytes(threads: number): number {
  return (threads + 1) * PAGE_SLOTS * SLOT_BYTES;
}
