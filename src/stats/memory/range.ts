// A thread's range of records in shared memory: views that any thread reads through, and the one writer's allocator.
//
// Records are self-describing (format.ts), so a reader walks a range from its beginning to the published end without
// any message; freed records keep their place and are used again for others of the same size.

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

/** A record's size word: the size in slots, and above it what the record is used for. */
const POOL_SHIFT = 24;
const SIZE_MASK = (1 << POOL_SHIFT) - 1;

/** Reads the records of one thread. Chunks that arrive later are attached in their order. */
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

  /** The first place that holds no record yet. */
  end(): number {
    const end = Atomics.load(this.control, Control.End);
    return end === 0 ? RANGE_GUARD : end;
  }

  /** Whether the place lies in an attached chunk. */
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

  /** What the record is used for whenever it is not free. */
  pool(place: number): RecordType {
    return this.words[place >>> RANGE_SHIFT]![(place & RANGE_MASK) * 2 + 1]! >>> POOL_SHIFT;
  }

  /** Slot `at` of the record at `place`. */
  slot(place: number, at: number): number {
    return this.slots[place >>> RANGE_SHIFT]![(place & RANGE_MASK) + at]!;
  }

  /** Int32 word `at` of the record at `place`. */
  word(place: number, at: number): number {
    return this.words[place >>> RANGE_SHIFT]![(place & RANGE_MASK) * 2 + at]!;
  }

  /** The text that begins at slot `at` of the record, from byte `from` on. */
  text(place: number, at: number, from: number, length: number): string {
    const start = ((place & RANGE_MASK) + at) * 8 + from;
    return this.bytes[place >>> RANGE_SHIFT]!.toString('utf8', start, start + length);
  }

  /** Gives the record a new type and generation: for its writer, and for the primary where a name is no longer used. */
  retag(place: number, type: RecordType): void {
    const words = this.words[place >>> RANGE_SHIFT]!;
    const at = (place & RANGE_MASK) * 2;
    Atomics.store(words, at, ((words[at]! & ~TYPE_MASK) + GENERATION_STEP) | 0 | type);
  }

  /** Shows every record of the attached chunks between `from` and the end; gives the place to go on from next time. */
  walk(from: number, visit: (place: number, type: RecordType) => void): number {
    // Another thread may already write a chunk that this view has not been given.
    const end = Math.min(this.end(), this.slots.length * RANGE_SLOTS);
    let place = from === 0 ? RANGE_GUARD : from;
    while (place < end) {
      const at = place & RANGE_MASK;
      // A chunk's last slots may be too few for a record: its rest is skipped.
      const size = at === 0 ? RANGE_GUARD : this.size(place);
      if (at !== 0) visit(place, this.type(place));
      place += size;
    }
    return place;
  }
}

/** The range as its one writer sees it. */
export class RangeWriter extends RangeView {
  /** Freed records by their purpose and size: what once held a name comes to hold names only. */
  readonly #free = new Map<number, number[]>();

  /** A record of at least `slots` slots, its head included, still free; 0 when there is no room. Contents are 0. */
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
      if (place >>> RANGE_SHIFT === this.slots.length - 1) return this.#refuse();
      this.words[place >>> RANGE_SHIFT]![(place & RANGE_MASK) * 2 + 1] = left;
      place += left;
    }
    if (place >>> RANGE_SHIFT >= this.slots.length) return this.#refuse();
    if ((place & RANGE_MASK) === 0) place += RANGE_GUARD;
    this.words[place >>> RANGE_SHIFT]![(place & RANGE_MASK) * 2 + 1] = sizeWord;
    Atomics.store(this.control, Control.End, place + size);
    return place;
  }

  /** The record is written: it is in use from now on. */
  commit(place: number): void {
    this.retag(place, this.pool(place));
  }

  /** The record is about to change in place; commit() ends that. */
  begin(place: number): void {
    this.retag(place, RecordType.Busy);
  }

  /** Nobody uses the record any more. */
  free(place: number): void {
    this.retag(place, RecordType.Free);
    this.reuse(place);
  }

  /** Takes a record that is of type Free already into the stock. */
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

  /** Writes text from slot `at` of the record on, byte `from`; the caller has made room. */
  setText(place: number, at: number, from: number, text: string): void {
    this.bytes[place >>> RANGE_SHIFT]!.write(text, ((place & RANGE_MASK) + at) * 8 + from, 'utf8');
  }

  #refuse(): number {
    this.control[Control.Dropped]!++;
    return 0;
  }
}
