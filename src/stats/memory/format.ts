// How stats lie in shared memory: pages with the slots of scopes, and every thread's range of records.
//
//   page chunk   [ primary | worker 0 | … | worker n-1 | view ]      PAGE_SLOTS Float64 each, one chunk index for all threads
//   range chunk  [ record | record | … ]                              one list of chunks a thread, written by that thread only
//   control      [ thread 0 | thread 1 | … ]                          CONTROL_WORDS Int32 each
//
// In the view page, which the primary writes, a counter's slot holds the baseline of the last reset, a histogram's the
// place of its merged record in the primary's range, and a text readout's the place of its text.
//
// Each word has one writer, and everybody reads: a thread writes its page, its range and the first half of its control words, the
// primary the view, the second half of all control words, and NamedRecord.View in all ranges. Where the primary writes what is
// another thread's all the same, that thread does not: foreign-writes.ts has all of it.
//
// Memory that nobody has touched costs address space only, so chunks are generous.

/** Slots of one thread's page in one chunk. A block of a scope lies in one chunk. */
export const PAGE_SLOTS = 16384;
/** Slots at the start of a page that stay empty: two threads never write the same cache line. */
export const PAGE_GUARD = 8;
export const SLOT_BYTES = 8;

/** A place in a range is chunk << RANGE_SHIFT | slot. Place 0 means none. */
export const RANGE_SHIFT = 21;
export const RANGE_SLOTS = 1 << RANGE_SHIFT;
export const RANGE_MASK = RANGE_SLOTS - 1;
export const RANGE_GUARD = 8;

/** Int32 words of a thread's control block: the thread writes the first half, the primary the second. */
export const CONTROL_WORDS = 64;
export const enum Control {
  /** The first place of the range that holds no record yet. */
  End = 0,
  /** Counts changes of the names in the range. */
  Names = 1,
  /** Samples and names that found no room. */
  Dropped = 2,
  /** Names that were looked up as strings. */
  Lookups = 3,
  /** Counts how often the primary has freed names in this range. */
  Retired = 32,
  /** Counts scopes that were removed, in the primary's range. */
  Removed = 33,
}

/**
 * Every record begins with two Int32: its tag (generation << 4 | type) and its size in slots with the type it has
 * whenever it is in use. A reader that finds the same tag before and after has read an undisturbed record.
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

/** A scope of the directory: Int32 words from the record's first. */
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

/** A name born in traffic: slots from the record's first. */
export const enum NamedRecord {
  /** Counter: value. Gauge: increments. Histogram: place of its Histogram record. */
  Value = 1,
  /** Gauge: decrements. */
  Downs = 2,
  /** Written by the primary. Counter: baseline. Histogram: place of the merged record. */
  View = 3,
  /** Int32 word: kind and bytes of the prefix. */
  KindWord = 8,
  PrefixBytesWord = 9,
  NameBytesWord = 10,
  UnitWord = 11,
}
/** Slot of a Named record at which prefix and name begin. */
export const NAMED_TEXT = 6;

/** A thread's histogram: slots from the record's first. */
export const enum HistogramRecord {
  /** Samples so far. */
  Count = 1,
  /** Counts of the whole numbers 0 to 9. */
  Digits = 2,
  /** Places of the decades, smallest exponent first. */
  Decades = 12,
}
/** Slots before the 90 counts of a decade. */
export const DECADE_HEAD = 1;

/** Int32 word of a Merged record with its number of bins. */
export const MERGED_USED_WORD = 2;
/** Slot at which its bins begin, three slots each: bin, count since start, count of the last interval. */
export const MERGED_BINS = 2;

/** Int32 word of a Text record with its bytes, and the slot at which they begin. */
export const TEXT_BYTES_WORD = 2;
export const TEXT_BYTES = 2;

/** Bytes of a chunk for `threads` threads and the view. */
export function pageChunkBytes(threads: number): number {
  return (threads + 1) * PAGE_SLOTS * SLOT_BYTES;
}
