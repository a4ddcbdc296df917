// The header fields of a message: each is a line "name: value CRLF" in the thread's memory, recorded as the offsets of its parts.

import { equalsFolded, type HeaderKey, type HeaderSet, OTHER_HEADER } from '../../common/text/header-names.js';
import type { HeadKind } from '../../common/text/joined-names.js';
import type { Memory } from '../../io/memory.js';

/** Words of a field record. */
export const FIELD_WORDS = 6;
export const enum Field {
  /** Header ID of the name; REMOVED for a removed field. */
  Id = 0,
  NameStart = 1,
  NameEnd = 2,
  ValueStart = 3,
  ValueEnd = 4,
  /** After the line's CRLF. */
  LineEnd = 5,
}
const REMOVED = -1;
const COMMA = 44;

export abstract class HeaderFields {
  abstract readonly kind: HeadKind;
  readonly memory: Memory;
  #fields = new Int32Array(24 * FIELD_WORDS);
  #count = 0;
  /** Bits of the known names that occur or occurred, so that most look-ups need no scan. */
  #presentLow = 0;
  #presentHigh = 0;
  /** Bits of the known names that occurred more than once. */
  #repeatedLow = 0;
  #repeatedHigh = 0;

  constructor(memory: Memory) {
    this.memory = memory;
  }

  /** Number of field records, including removed ones. Indexes are 0 to size - 1. */
  get size(): number {
    return this.#count;
  }

  /** Bytes of all names and values. */
  get fieldBytes(): number {
    const fields = this.#fields;
    const end = this.#count * FIELD_WORDS;
    let bytes = 0;
    for (let at = 0; at < end; at += FIELD_WORDS) {
      if (fields[at] === REMOVED) continue;
      bytes += fields[at + Field.NameEnd]! - fields[at + Field.NameStart]!;
      bytes += fields[at + Field.ValueEnd]! - fields[at + Field.ValueStart]!;
    }
    return bytes;
  }

  /** Number of fields, without removed ones. */
  get fieldCount(): number {
    const fields = this.#fields;
    const end = this.#count * FIELD_WORDS;
    let count = 0;
    for (let at = 0; at < end; at += FIELD_WORDS) if (fields[at] !== REMOVED) count++;
    return count;
  }

  clearFields(): void {
    this.#count = this.#presentLow = this.#presentHigh = this.#repeatedLow = this.#repeatedHigh = 0;
  }

  /** Appends the field whose line is [nameStart, lineEnd). For codecs and prepared lines. */
  addField(
    id: number,
    nameStart: number,
    nameEnd: number,
    valueStart: number,
    valueEnd: number,
    lineEnd: number,
  ): void {
    const at = this.#count * FIELD_WORDS;
    if (at === this.#fields.length) this.#grow();
    const fields = this.#fields;
    fields[at] = id;
    fields[at + Field.NameStart] = nameStart;
    fields[at + Field.NameEnd] = nameEnd;
    fields[at + Field.ValueStart] = valueStart;
    fields[at + Field.ValueEnd] = valueEnd;
    fields[at + Field.LineEnd] = lineEnd;
    this.#count++;
    const bit = 1 << id;
    if (id < 32) {
      this.#repeatedLow |= this.#presentLow & bit;
      this.#presentLow |= bit;
    } else {
      this.#repeatedHigh |= this.#presentHigh & bit;
      this.#presentHigh |= bit;
    }
  }

  /** Appends the fields of `count` records from records[from] on, whose offsets are relative to `base`. */
  addFields(records: Int32Array, from: number, count: number, base: number): void {
    const size = this.#count;
    while ((size + count) * FIELD_WORDS > this.#fields.length) this.#grow();
    const fields = this.#fields;
    const end = (size + count) * FIELD_WORDS;
    let low = this.#presentLow;
    let high = this.#presentHigh;
    let repeatedLow = this.#repeatedLow;
    let repeatedHigh = this.#repeatedHigh;
    for (let at = size * FIELD_WORDS; at < end; at += FIELD_WORDS, from += FIELD_WORDS) {
      const id = records[from]!;
      fields[at] = id;
      fields[at + Field.NameStart] = records[from + Field.NameStart]! + base;
      fields[at + Field.NameEnd] = records[from + Field.NameEnd]! + base;
      fields[at + Field.ValueStart] = records[from + Field.ValueStart]! + base;
      fields[at + Field.ValueEnd] = records[from + Field.ValueEnd]! + base;
      fields[at + Field.LineEnd] = records[from + Field.LineEnd]! + base;
      const bit = 1 << id;
      if (id < 32) {
        repeatedLow |= low & bit;
        low |= bit;
      } else {
        repeatedHigh |= high & bit;
        high |= bit;
      }
    }
    this.#presentLow = low;
    this.#presentHigh = high;
    this.#repeatedLow = repeatedLow;
    this.#repeatedHigh = repeatedHigh;
    this.#count = size + count;
  }

  /** Writes the records of the first `count` fields to records[from …], with offsets relative to `base`. */
  copyFields(records: Int32Array, from: number, count: number, base: number): void {
    const fields = this.#fields;
    const end = count * FIELD_WORDS;
    for (let at = 0; at < end; at++) records[from + at] = fields[at]! - (at % FIELD_WORDS === Field.Id ? 0 : base);
  }

  id(index: number): number {
    return this.#fields[index * FIELD_WORDS]!;
  }
  isRemoved(index: number): boolean {
    return this.#fields[index * FIELD_WORDS]! === REMOVED;
  }
  nameStart(index: number): number {
    return this.#fields[index * FIELD_WORDS + Field.NameStart]!;
  }
  nameEnd(index: number): number {
    return this.#fields[index * FIELD_WORDS + Field.NameEnd]!;
  }
  valueStart(index: number): number {
    return this.#fields[index * FIELD_WORDS + Field.ValueStart]!;
  }
  valueEnd(index: number): number {
    return this.#fields[index * FIELD_WORDS + Field.ValueEnd]!;
  }
  lineEnd(index: number): number {
    return this.#fields[index * FIELD_WORDS + Field.LineEnd]!;
  }

  /** Returns whether a known name may occur; false is certain. */
  mayHave(id: number): boolean {
    return ((id < 32 ? this.#presentLow >>> id : this.#presentHigh >>> (id - 32)) & 1) === 1;
  }

  /** Returns whether a known name below 32 with its bit in `mask` may occur; false is certain. */
  mayHaveAny(mask: number): boolean {
    return (this.#presentLow & mask) !== 0;
  }

  /** Returns whether one of these names may occur; false is certain. */
  mayHaveOneOf(names: HeaderSet): boolean {
    return ((this.#presentLow & names.low) | (this.#presentHigh & names.high)) !== 0;
  }

  /** Returns the index of the next field with the name of the field at `index`, or -1. */
  findNext(key: HeaderKey, index: number): number {
    const { id } = key;
    // Most heads have a known name only once: no scan is needed.
    if (id !== OTHER_HEADER && ((id < 32 ? this.#repeatedLow : this.#repeatedHigh) & (1 << id)) === 0) return -1;
    return this.find(key, index + 1);
  }

  /** Returns the index of the first field at or after `from` with the known name `id`, or -1. */
  findId(id: number, from = 0): number {
    if (!this.mayHave(id)) return -1;
    const fields = this.#fields;
    const end = this.#count * FIELD_WORDS;
    for (let at = from * FIELD_WORDS; at < end; at += FIELD_WORDS) if (fields[at] === id) return at / FIELD_WORDS;
    return -1;
  }

  /** Returns the index of the first field at or after `from` with this name, or -1. */
  find(key: HeaderKey, from = 0): number {
    if (key.id !== OTHER_HEADER) return this.findId(key.id, from);
    if (!this.mayHave(OTHER_HEADER)) return -1;
    const fields = this.#fields;
    const bytes = this.memory.bytes;
    for (let index = from; index < this.#count; index++) {
      const at = index * FIELD_WORDS;
      if (
        fields[at] === OTHER_HEADER &&
        equalsFolded(bytes, fields[at + Field.NameStart]!, fields[at + Field.NameEnd]!, key.bytes)
      )
        return index;
    }
    return -1;
  }

  /** Returns the field's name in lower case. */
  name(index: number): string {
    return this.memory.text(this.nameStart(index), this.nameEnd(index)).toLowerCase();
  }
  value(index: number): string {
    return this.memory.text(this.valueStart(index), this.valueEnd(index));
  }
  /**
   * Returns the value of this name: that of its first field, or all values joined if the header is a list (HeaderKey.joinedIn). Undefined
   * if it is absent.
   */
  get(key: HeaderKey): string | undefined {
    const index = this.findValue(key);
    if (index < 0) return undefined;
    const text = this.value(index);
    this.withdrawValue(index);
    return text;
  }

  /** See HeaderView. */
  findValue(key: HeaderKey): number {
    const { id } = key;
    const first = id === OTHER_HEADER ? this.find(key) : this.findId(id);
    if (first < 0 || (id !== OTHER_HEADER && ((id < 32 ? this.#repeatedLow : this.#repeatedHigh) & (1 << id)) === 0)) {
      return first;
    }
    const isJoined = (key.joinedIn & this.kind) !== 0 && this.findNext(key, first) >= 0;
    return isJoined ? this.#join(key, first) : first;
  }

  /** See HeaderView. */
  withdrawValue(index: number): void {
    if (index === this.#count) this.memory.withdrawScratch(this.valueStart(index));
  }

  /**
   * Writes the joined non-empty values of a name, as Envoy does, and their range to the record after the last field. Returns that record's
   * index.
   */
  #join(key: HeaderKey, first: number): number {
    const { memory } = this;
    let length = 0;
    for (let i = first; i >= 0; i = this.findNext(key, i)) length += this.valueEnd(i) - this.valueStart(i) + 1;
    const start = memory.scratch(length);
    let end = start;
    for (let i = first; i >= 0; i = this.findNext(key, i)) {
      if (this.valueStart(i) === this.valueEnd(i)) continue;
      if (end > start) memory.bytes[end++] = COMMA;
      memory.copy(end, this.valueStart(i), this.valueEnd(i));
      end += this.valueEnd(i) - this.valueStart(i);
    }
    const at = this.#count * FIELD_WORDS;
    if (at === this.#fields.length) this.#grow();
    this.#fields[at + Field.ValueStart] = start;
    this.#fields[at + Field.ValueEnd] = end;
    return this.#count;
  }

  removeAt(index: number): void {
    this.#fields[index * FIELD_WORDS] = REMOVED;
  }
  removeId(id: number): void {
    for (let index = this.findId(id); index >= 0; index = this.findId(id, index + 1)) this.removeAt(index);
  }
  /** Removes all fields of this name. Returns whether there was one. */
  remove(key: HeaderKey): boolean {
    let found = false;
    for (let index = this.find(key); index >= 0; index = this.find(key, index + 1)) {
      this.removeAt(index);
      found = true;
    }
    return found;
  }

  /** Returns the length of all lines in bytes. */
  linesLength(): number {
    const fields = this.#fields;
    const end = this.#count * FIELD_WORDS;
    let sum = 0;
    for (let at = 0; at < end; at += FIELD_WORDS) {
      if (fields[at] !== REMOVED) sum += fields[at + Field.LineEnd]! - fields[at + Field.NameStart]!;
    }
    return sum;
  }

  /** Moves the start line at [start, end) and all field lines to `to`. Adjacent lines are copied at once. Returns the offset after them. */
  protected moveLines(to: number, start: number, end: number): number {
    const { memory } = this;
    const fields = this.#fields;
    const count = this.#count * FIELD_WORDS;
    for (let at = 0; at < count; at += FIELD_WORDS) {
      if (fields[at] === REMOVED) continue;
      const line = fields[at + Field.NameStart]!;
      if (line !== end) {
        memory.copy(to, start, end);
        to += end - start;
        start = line;
      }
      end = fields[at + Field.LineEnd]!;
      const shift = to - start;
      for (let word = Field.NameStart; word <= Field.LineEnd; word++) fields[at + word] = fields[at + word]! + shift;
    }
    memory.copy(to, start, end);
    return to + end - start;
  }

  #grow(): void {
    const larger = new Int32Array(this.#fields.length * 2);
    larger.set(this.#fields);
    this.#fields = larger;
  }
}
