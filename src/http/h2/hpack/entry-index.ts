// Finds entries of an encoder's dynamic table by their hash: a scan of the table would cost each field more, the more values its connection
// has sent.
//
// Entries are chained from the newest to the oldest of their bucket, by slots: consecutive numbers modulo SLOTS. Evicted entries, which are
// the oldest, stay in the chains until their slots are used again; that a chain has reached them shows in their age.

/** More than the entries of a table of 4096 bytes, each of which takes at least 33. */
const SLOTS = 128;
const BUCKETS = 64;
/** The end of a chain. */
const NONE = 255;

export class EntryIndex {
  /** By bucket: the slot of the newest entry. */
  readonly #heads = new Uint8Array(BUCKETS).fill(NONE);
  /** By slot: the slot of the next older entry of the bucket. */
  readonly #older = new Uint8Array(SLOTS);
  #newest = SLOTS - 1;

  /** Adds the entry that the table has just taken as its newest one. */
  add(hash: number): void {
    this.#newest = (this.#newest + 1) & (SLOTS - 1);
    const bucket = hash & (BUCKETS - 1);
    this.#older[this.#newest] = this.#heads[bucket]!;
    this.#heads[bucket] = this.#newest;
  }

  /** Returns the newest entry of the hash's bucket, or one that is not in the table: 0 is the newest one of all. */
  first(hash: number): number {
    return this.#entryOf(this.#heads[hash & (BUCKETS - 1)]!);
  }

  /** Returns the next older entry of the bucket, or one that is not in the table. */
  next(entry: number): number {
    const next = this.#entryOf(this.#older[(this.#newest - entry) & (SLOTS - 1)]!);
    return next > entry ? next : SLOTS;
  }

  #entryOf(slot: number): number {
    return slot === NONE ? SLOTS : (this.#newest - slot) & (SLOTS - 1);
  }
}
