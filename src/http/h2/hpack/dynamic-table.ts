// The dynamic table of an HPACK decoder or encoder (RFC 7541, section 2.3.2). Entries are kept as lines "name: value CRLF", so that the
// decoder copies one range into a head for a reference.

import { ENTRY_WORDS, Entry, tableNameLength } from './static-table.js';

/** The overhead of an entry (RFC 7541, section 4.1). */
export const ENTRY_OVERHEAD = 32;

const FIRST_LINE_BYTES = 512;
const FIRST_ENTRIES = 16;

export class DynamicTable {
  /** Maximum size of the entries. */
  maxBytes: number;
  /** The records of all entries in a ring; see recordOf(). */
  records = NO_RECORDS;
  /** The lines. Both are allocated with the first entry, since many connections never index a field. */
  lines = NO_LINES;
  #bytes = 0;
  #count = 0;
  /** Ring index of the newest entry. */
  #newest = -1;
  /** Offset of the oldest line, and after the newest one. */
  #start = 0;
  #end = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  get count(): number {
    return this.#count;
  }

  /** The size in the sense of RFC 7541. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the index in `records` of an entry's record; entry 0 is the newest. It must exist. */
  recordOf(entry: number): number {
    const at = (this.#newest - entry) * ENTRY_WORDS;
    return at < 0 ? at + this.records.length : at;
  }

  /** Changes the maximum size, and evicts what no longer fits. */
  resize(maxBytes: number): void {
    this.maxBytes = maxBytes;
    this.#evict(0);
  }

  /**
   * Adds an entry as the newest one. Returns the offset in `lines` where the caller writes its line, or -1 for an entry larger than the
   * table, which empties it (RFC 7541, section 4.4). `hash`: for the encoder's look-ups.
   */
  add(nameLength: number, valueLength: number, kind: number, hash: number): number {
    const bytes = tableNameLength(kind, nameLength) + valueLength + ENTRY_OVERHEAD;
    this.#evict(bytes);
    if (bytes > this.maxBytes) return -1;
    const length = nameLength + valueLength + 4;
    this.#reserve(length);
    const line = this.#end;
    const capacity = this.records.length / ENTRY_WORDS;
    this.#newest = this.#newest + 1 === capacity ? 0 : this.#newest + 1;
    const at = this.#newest * ENTRY_WORDS;
    this.records[at] = line;
    this.records[at + Entry.NameLength] = nameLength;
    this.records[at + Entry.ValueLength] = valueLength;
    this.records[at + Entry.Kind] = kind;
    this.records[at + Entry.Hash] = hash;
    this.#end = line + length;
    this.#count++;
    this.#bytes += bytes;
    return line;
  }

  /** Evicts the oldest entries until `bytes` more fit, or the table is empty. */
  #evict(bytes: number): void {
    while (this.#count > 0 && this.#bytes + bytes > this.maxBytes) {
      const at = this.recordOf(this.#count - 1);
      const nameLength = this.records[at + Entry.NameLength]!;
      const valueLength = this.records[at + Entry.ValueLength]!;
      this.#bytes -= tableNameLength(this.records[at + Entry.Kind]!, nameLength) + valueLength + ENTRY_OVERHEAD;
      this.#start = this.records[at + Entry.Line]! + nameLength + valueLength + 4;
      this.#count--;
    }
    if (this.#count === 0) this.#start = this.#end = 0;
  }

  /** Makes room for one more entry with a line of `length` bytes. */
  #reserve(length: number): void {
    if ((this.#count + 1) * ENTRY_WORDS > this.records.length) this.#growRecords();
    if (this.#end + length <= this.lines.byteLength) return;
    const used = this.#end - this.#start;
    let capacity = Math.max(this.lines.byteLength, FIRST_LINE_BYTES);
    // Half of the buffer is free after the move, so that moves are rare.
    while ((used + length) * 2 > capacity) capacity *= 2;
    const from = new Uint8Array(this.lines.buffer, this.#start, used);
    if (capacity === this.lines.byteLength) new Uint8Array(this.lines.buffer).set(from);
    else {
      const larger = new Uint8Array(capacity);
      larger.set(from);
      this.lines = new DataView(larger.buffer);
    }
    for (let entry = 0; entry < this.#count; entry++) {
      const at = this.recordOf(entry);
      this.records[at] = this.records[at]! - this.#start;
    }
    this.#start = 0;
    this.#end = used;
  }

  #growRecords(): void {
    const larger = new Int32Array(Math.max(FIRST_ENTRIES * ENTRY_WORDS, this.records.length * 2));
    for (let entry = 0; entry < this.#count; entry++) {
      const at = this.recordOf(entry);
      larger.set(this.records.subarray(at, at + ENTRY_WORDS), (this.#count - 1 - entry) * ENTRY_WORDS);
    }
    this.records = larger;
    this.#newest = this.#count - 1;
  }
}

const NO_RECORDS = new Int32Array(0);
const NO_LINES = new DataView(new ArrayBuffer(0));
