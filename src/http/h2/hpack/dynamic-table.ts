// The dynamic table of an HPACK decoder or encoder (RFC 7541, section 2.3.2). Entries are kept as lines "name: value CRLF", so that the
// decoder copies one range into a head for a reference.

import { ENTRY_BYTES, Entry, tableNameLength } from './static-table.js';

/** The overhead of an entry (RFC 7541, section 4.1). */
export const ENTRY_OVERHEAD = 32;

/** Enough for the fields that a browser sends with each request. */
const FIRST_ENTRIES = 8;
const FIRST_LINE_BYTES = 352;

export class DynamicTable {
  /** Maximum size of the entries. */
  maxBytes: number;
  /** The records of all entries in a ring, see recordOf(), and then their lines. Allocated with the first entry: many connections never index a field. */
  view = EMPTY;
  /** How many records the ring has. */
  #capacity = 0;
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

  /** Returns the offset in `view` of an entry's record; entry 0 is the newest. It must exist. */
  recordOf(entry: number): number {
    const slot = this.#newest - entry;
    return (slot < 0 ? slot + this.#capacity : slot) * ENTRY_BYTES;
  }

  /** Changes the maximum size, and evicts what no longer fits. */
  resize(maxBytes: number): void {
    this.maxBytes = maxBytes;
    this.#evict(0);
  }

  /**
   * Adds an entry as the newest one. Returns the offset in `view` where the caller writes its line, or -1 for an entry larger than the
   * table, which empties it (RFC 7541, section 4.4). `hash`: for the encoder's look-ups.
   */
  add(nameLength: number, valueLength: number, kind: number, hash: number): number {
    const bytes = tableNameLength(kind, nameLength) + valueLength + ENTRY_OVERHEAD;
    this.#evict(bytes);
    if (bytes > this.maxBytes) return -1;
    const length = nameLength + valueLength + 4;
    this.#reserve(length);
    const line = this.#end;
    this.#newest = this.#newest + 1 === this.#capacity ? 0 : this.#newest + 1;
    const at = this.#newest * ENTRY_BYTES;
    const { view } = this;
    view.setInt32(at + Entry.Line, line, true);
    view.setInt32(at + Entry.NameLength, nameLength, true);
    view.setInt32(at + Entry.ValueLength, valueLength, true);
    view.setInt32(at + Entry.Kind, kind, true);
    view.setInt32(at + Entry.Hash, hash, true);
    this.#end = line + length;
    this.#count++;
    this.#bytes += bytes;
    return line;
  }

  /** Evicts the oldest entries until `bytes` more fit, or the table is empty. */
  #evict(bytes: number): void {
    const { view } = this;
    while (this.#count > 0 && this.#bytes + bytes > this.maxBytes) {
      const at = this.recordOf(this.#count - 1);
      const nameLength = view.getInt32(at + Entry.NameLength, true);
      const valueLength = view.getInt32(at + Entry.ValueLength, true);
      const kind = view.getInt32(at + Entry.Kind, true);
      this.#bytes -= tableNameLength(kind, nameLength) + valueLength + ENTRY_OVERHEAD;
      this.#start = view.getInt32(at + Entry.Line, true) + nameLength + valueLength + 4;
      this.#count--;
    }
    if (this.#count === 0) this.#start = this.#end = this.#capacity * ENTRY_BYTES;
  }

  /** Makes room for one more entry with a line of `length` bytes. */
  #reserve(length: number): void {
    const isFull = this.#count === this.#capacity;
    if (!isFull && this.#end + length <= this.view.byteLength) return;
    const used = this.#end - this.#start;
    const capacity = isFull ? Math.max(FIRST_ENTRIES, this.#capacity * 2) : this.#capacity;
    let lineBytes = Math.max(this.view.byteLength - this.#capacity * ENTRY_BYTES, FIRST_LINE_BYTES);
    // Half of the bytes are free after the move, so that moves are rare.
    while ((used + length) * 2 > lineBytes) lineBytes *= 2;
    if (capacity * ENTRY_BYTES + lineBytes > this.view.byteLength) this.#grow(capacity, lineBytes, used);
    else this.#compact(used);
  }

  /** Moves the lines to the beginning of their room. */
  #compact(used: number): void {
    const lines = this.#capacity * ENTRY_BYTES;
    new Uint8Array(this.view.buffer).copyWithin(lines, this.#start, this.#end);
    for (let entry = 0; entry < this.#count; entry++) {
      const at = this.recordOf(entry) + Entry.Line;
      this.view.setInt32(at, this.view.getInt32(at, true) - this.#start + lines, true);
    }
    this.#start = lines;
    this.#end = lines + used;
  }

  /** Moves all entries to a larger view, the oldest one first. */
  #grow(capacity: number, lineBytes: number, used: number): void {
    const lines = capacity * ENTRY_BYTES;
    const moved = new DataView(new ArrayBuffer(lines + lineBytes));
    const from = new Uint8Array(this.view.buffer);
    const to = new Uint8Array(moved.buffer);
    for (let slot = 0; slot < this.#count; slot++) {
      const record = this.recordOf(this.#count - 1 - slot);
      const at = slot * ENTRY_BYTES;
      to.set(from.subarray(record, record + ENTRY_BYTES), at);
      moved.setInt32(at + Entry.Line, this.view.getInt32(record + Entry.Line, true) - this.#start + lines, true);
    }
    to.set(from.subarray(this.#start, this.#start + used), lines);
    this.view = moved;
    this.#capacity = capacity;
    this.#newest = this.#count - 1;
    this.#start = lines;
    this.#end = lines + used;
  }
}

const EMPTY = new DataView(new ArrayBuffer(0));
