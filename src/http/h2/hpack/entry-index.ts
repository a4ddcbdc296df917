// Finds entries of an encoder's dynamic table by a hash of their name and value, and by their name: a scan of the table would cost each
// field more, the more values its connection has sent.
//
// Entries are chained from the newest to the oldest of their bucket, by slots: consecutive numbers modulo SLOTS. Evicted entries, which are
// the oldest, stay in the chains until their slots are used again; that a chain has reached them shows in their age.

/** More than the entries of a table of 4096 bytes, each of which takes at least 33. */
const SLOTS = 128;
/** Of each kind. */
const BUCKETS = 64;
/** The end of a chain. */
const NONE = 255;

/** Parts of the array: by bucket the slot of the newest entry, by slot that of the next older one of its bucket. */
const FIELD_HEADS = 0;
const NAME_HEADS = BUCKETS;
const OLDER_FIELDS = 2 * BUCKETS;
const OLDER_NAMES = OLDER_FIELDS + SLOTS;

export class EntryIndex {
  readonly #slots = new Uint8Array(OLDER_NAMES + SLOTS).fill(NONE);
  #newest = SLOTS - 1;

  /** Adds the entry that the table has just taken as its newest one. `kind`: identifies its name. */
  add(hash: number, kind: number): void {
    this.#newest = (this.#newest + 1) & (SLOTS - 1);
    this.#chain(FIELD_HEADS + (hash & (BUCKETS - 1)), OLDER_FIELDS);
    this.#chain(NAME_HEADS + (kind & (BUCKETS - 1)), OLDER_NAMES);
  }

  /** Returns the newest entry of the hash's bucket, or one that is not in the table: 0 is the newest one of all. */
  firstField(hash: number): number {
    return this.#entryOf(this.#slots[FIELD_HEADS + (hash & (BUCKETS - 1))]!);
  }

  /** Returns the next older entry of the bucket, or one that is not in the table. */
  nextField(entry: number): number {
    return this.#next(entry, OLDER_FIELDS);
  }

  /** The same by name. */
  firstName(kind: number): number {
    return this.#entryOf(this.#slots[NAME_HEADS + (kind & (BUCKETS - 1))]!);
  }

  nextName(entry: number): number {
    return this.#next(entry, OLDER_NAMES);
  }

  #chain(head: number, older: number): void {
    this.#slots[older + this.#newest] = this.#slots[head]!;
    this.#slots[head] = this.#newest;
  }

  #next(entry: number, older: number): number {
    const next = this.#entryOf(this.#slots[older + ((this.#newest - entry) & (SLOTS - 1))]!);
    return next > entry ? next : SLOTS;
  }

  #entryOf(slot: number): number {
    return slot === NONE ? SLOTS : (this.#newest - slot) & (SLOTS - 1);
  }
}
