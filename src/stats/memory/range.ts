// A thread's range of records in shared memory: the view for readers on any thread, and the allocator of its only writer.
//
// Records are self-describing (format.ts): a reader walks a range from its beginning to the published end without messages.
// Freed records stay in place and are reused for records of the same size.

import {
  CONTROL_WORDS,
  Control,
  GENERATION_STEP,
  RANGE_GUARD,
  RANGE_MASK,
  RANGE_SHIFT,
  RANGE_SLOTS,
  RecordType,
  TYPE_MASK,
} from './format.js';

/** A record's size word: the size in slots, and in the upper bits its pool. */
const POOL_SHIFT = 24;
const SIZE_MASK = (1 << POOL_SHIFT) - 1;

/** Reads the records of one thread. Later chunks are attached in order. */
export class RangeView {
  readonly slots: Float64Array[] = [];
  readonly words: Int32Array[] = [];
  readonly bytes: Buffer[] = [];
  /** The control words of the range's thread. */
  readonly control: Int32Array;

  constructor(control: SharedArrayBuffer, thread: number, chunks: readonly SharedArrayBuffer[]) {
    this.control = new Int32Array(control, thread * CONTROL_WORDS * 4, CONTROL_WORDS);
    for (const chunk of chunks) this.attach(chunk);
  }

  attach(chunk: SharedArrayBuffer): void {
    this.slots.push(new Float64Array(chunk));
    this.words.push(new Int32Array(chunk));
    this.bytes.push(Buffer.from(chunk));
  }

  /** Returns the first place without a record. */
  end(): number {
    const end = Atomics.load(this.control, Control.End);
    return end === 0 ? RANGE_GUARD : end;
  }

  /** Returns whether a place lies in an attached chunk. */
  reaches(place: number): boolean {
    return place >>> RANGE_SHIFT < this.slots.length;
  }

  tag(place: number): number {
    return Atomics.load(this.words[place >>> RANGE_SHIFT]!, (place & RANGE_MASK) * 2);
  }

  type(place: number): RecordType {
    return this.tag(place) & TYPE_MASK;
  }

  size(place: number): number {
    return this.words[place >>> RANGE_SHIFT]![(place & RANGE_MASK) * 2 + 1]! & SIZE_MASK;
  }

  /** Returns the type that the record has when it is in use. */
  pool(place: number): RecordType {
    return this.words[place >>> RANGE_SHIFT]![(place & RANGE_MASK) * 2 + 1]! >>> POOL_SHIFT;
  }

  /** Returns slot `at` of the record at `place`. */
  slot(place: number, at: number): number {
    return this.slots[place >>> RANGE_SHIFT]![(place & RANGE_MASK) + at]!;
  }

  /** Returns Int32 word `at` of the record at `place`. */
  word(place: number, at: number): number {
    return this.words[place >>> RANGE_SHIFT]![(place & RANGE_MASK) * 2 + at]!;
  }

  /** Returns the text of `length` bytes at byte `from` after slot `at` of the record. */
  text(place: number, at: number, from: number, length: number): string {
    const start = ((place & RANGE_MASK) + at) * 8 + from;
    return this.bytes[place >>> RANGE_SHIFT]!.toString('utf8', start, start + length);
  }

  /**
   * Gives the record a new type and generation. Called by the writer, and by the primary for a name that is no longer used.
   */
  retag(place: number, type: RecordType): void {
    const words = this.words[place >>> RANGE_SHIFT]!;
    const at = (place & RANGE_MASK) * 2;
    Atomics.store(words, at, ((words[at]! & ~TYPE_MASK) + GENERATION_STEP) | 0 | type);
  }

  /** Visits every record in the attached chunks from `from` to the end. Returns the place to continue from. */
  walk(from: number, visit: (place: number, type: RecordType) => void): number {
    // Another thread may already write a chunk that is not attached to this view.
    const end = Math.min(this.end(), this.slots.length * RANGE_SLOTS);
    let place = from === 0 ? RANGE_GUARD : from;
    while (place < end) {
      const at = place & RANGE_MASK;
      // A chunk's last slots may be too few for a record: they are skipped.
      const size = at === 0 ? RANGE_GUARD : this.size(place);
      if (at !== 0) visit(place, this.type(place));
      place += size;
    }
    return place;
  }
}

/** The range with the operations of its only writer. */
export class RangeWriter extends RangeView {
  /** Freed records by pool and size: a record that held a name is reused for names only. */
  readonly #free = new Map<number, number[]>();

  /** Returns a free record of at least `slots` slots, including its head, with zeroed contents; 0 if there is no room. */
  allocate(slots: number, pool: RecordType): number {
    const size = (slots + 3) & ~3;
    const sizeWord = size | (pool << POOL_SHIFT);
    const freed = this.#free.get(sizeWord)?.pop();
    if (freed !== undefined) {
      const at = freed & RANGE_MASK;
      this.slots[freed >>> RANGE_SHIFT]!.fill(0, at + 1, at + size);
      return freed;
    }
    let place = this.end();
    const left = RANGE_SLOTS - (place & RANGE_MASK);
    if (size > left) {
      if (place >>> RANGE_SHIFT === this.slots.length - 1) return this.refuse();
      this.words[place >>> RANGE_SHIFT]![(place & RANGE_MASK) * 2 + 1] = left;
      place += left;
    }
    if (place >>> RANGE_SHIFT >= this.slots.length) return this.refuse();
    if ((place & RANGE_MASK) === 0) place += RANGE_GUARD;
    this.words[place >>> RANGE_SHIFT]![(place & RANGE_MASK) * 2 + 1] = sizeWord;
    Atomics.store(this.control, Control.End, place + size);
    return place;
  }

  /** Counts something that is lost without room. Returns 0. */
  refuse(): number {
    this.control[Control.Dropped]!++;
    return 0;
  }

  /** Called when the record is written. It is in use from now on. */
  commit(place: number): void {
    this.retag(place, this.pool(place));
  }

  /** Called before the record changes in place. commit() ends the change. */
  begin(place: number): void {
    this.retag(place, RecordType.Busy);
  }

  /** Frees a record. */
  free(place: number): void {
    this.retag(place, RecordType.Free);
    this.reuse(place);
  }

  /** Adds a record that is already of type Free to the free list. */
  reuse(place: number): void {
    const sizeWord = this.word(place, 1);
    const list = this.#free.get(sizeWord);
    if (list === undefined) this.#free.set(sizeWord, [place]);
    else list.push(place);
  }

  setSlot(place: number, at: number, value: number): void {
    this.slots[place >>> RANGE_SHIFT]![(place & RANGE_MASK) + at] = value;
  }

  setWord(place: number, at: number, value: number): void {
    this.words[place >>> RANGE_SHIFT]![(place & RANGE_MASK) * 2 + at] = value;
  }

  /** Writes text at byte `from` after slot `at` of the record; the caller has allocated the room. */
  setText(place: number, at: number, from: number, text: string): void {
    this.bytes[place >>> RANGE_SHIFT]!.write(text, ((place & RANGE_MASK) + at) * 8 + from, 'utf8');
  }
}
