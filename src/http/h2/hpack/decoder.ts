// Decodes header blocks (RFC 7541). Fields are written as lines "name: value CRLF" to the thread's scratch, from where they are forwarded
// as ranges: no string is made of them.

import { copyBytes } from '../../../common/copy-bytes.js';
import type { Memory } from '../../../io/memory.js';
import { DynamicTable } from './dynamic-table.js';
import { huffmanDecode, maxDecodedLength } from './huffman.js';
import {
  ENTRY_BYTES,
  Entry,
  FieldKind,
  HOST_NAME,
  kindOfName,
  kindOfValue,
  STATIC_ENTRIES,
  STATIC_SIZE,
} from './static-table.js';

/** Receives the fields of a block in order. */
export interface FieldSink {
  /** The block's fields are no longer needed: it is only decoded because it changes the dynamic table. */
  readonly isFull: boolean;
  /**
   * Called for each field. `kind`: see FieldKind. The ranges are in the memory; CRLF follows the value. The name of an :authority is shown
   * as "host".
   */
  field(kind: number, nameStart: number, nameEnd: number, valueStart: number, valueEnd: number): void;
}

/** Scratch is taken in pieces of at least this size. */
const PIECE = 1024;
/** The longest integer that is accepted: larger ones have no use here, and exceed a small integer. */
const MAX_INTEGER = 1 << 28;

export class HpackDecoder {
  readonly #memory: Memory;
  readonly #table: DynamicTable;
  /** The maximum size that this side has announced and the peer acknowledged. */
  #limit: number;
  /** The limit is below the table's size: the next block must begin with an update. */
  #needsUpdate = false;
  /** The result of #integer(). */
  #integerValue = 0;
  /** Free scratch bytes for lines. */
  #next = 0;
  #end = 0;

  constructor(memory: Memory, limit: number) {
    this.#memory = memory;
    this.#table = new DynamicTable(limit);
    this.#limit = limit;
  }

  /** Called when the peer has acknowledged another SETTINGS_HEADER_TABLE_SIZE. */
  setLimit(bytes: number): void {
    this.#limit = bytes;
    if (bytes < this.#table.maxBytes) this.#needsUpdate = true;
  }

  /** The size of the dynamic table. */
  get tableBytes(): number {
    return this.#table.bytes;
  }

  /**
   * Decodes the complete block memory[at, end). Returns false if it is invalid: the connection must end with COMPRESSION_ERROR. Throws
   * NoRoomError.
   */
  decode(at: number, end: number, sink: FieldSink): boolean {
    this.#next = this.#end = 0;
    const isValid = this.#decode(at, end, sink);
    if (this.#end > this.#next && !this.#memory.isScratchFull) this.#memory.withdrawScratch(this.#next);
    return isValid;
  }

  #decode(at: number, end: number, sink: FieldSink): boolean {
    const { bytes } = this.#memory;
    let isBeginning = true;
    while (at < end) {
      const first = bytes[at]!;
      if (first >= 0x80) {
        at = this.#integer(at, end, 0x7f);
        if (at < 0 || !this.#indexed(this.#integerValue, sink)) return false;
      } else if (first >= 0x40) at = this.#literal(at, end, 0x3f, true, sink);
      else if (first >= 0x20) {
        if (!isBeginning) return false;
        at = this.#sizeUpdate(at, end);
        if (at < 0) return false;
        continue;
      } else at = this.#literal(at, end, 0x0f, false, sink);
      if (at < 0 || this.#needsUpdate) return false;
      isBeginning = false;
    }
    return true;
  }

  #sizeUpdate(at: number, end: number): number {
    const next = this.#integer(at, end, 0x1f);
    if (next < 0 || this.#integerValue > this.#limit) return -1;
    this.#table.resize(this.#integerValue);
    this.#needsUpdate = false;
    return next;
  }

  #indexed(index: number, sink: FieldSink): boolean {
    const { view, at } = this.#entry(index);
    if (at < 0) return false;
    const kind = view.getInt32(at + Entry.Kind, true);
    const nameLength = view.getInt32(at + Entry.NameLength, true);
    const valueLength = view.getInt32(at + Entry.ValueLength, true);
    const length = nameLength + valueLength + 4;
    if (sink.isFull) {
      sink.field(kind, 0, nameLength, 0, valueLength);
      return true;
    }
    const line = this.#room(length);
    const from = view.getInt32(at + Entry.Line, true);
    copyBytes(this.#memory.view, line, view, from, from + length);
    this.#next = line + length;
    const nameEnd = line + nameLength;
    sink.field(kind, line, nameEnd, nameEnd + 2, nameEnd + 2 + valueLength);
    return true;
  }

  /** Reads a literal whose name is an index in the bits of `mask`, or a string. Returns the offset after it, or -1. */
  #literal(at: number, end: number, mask: number, isAdded: boolean, sink: FieldSink): number {
    const { bytes, view } = this.#memory;
    at = this.#integer(at, end, mask);
    if (at < 0) return -1;
    const index = this.#integerValue;
    let kind: number;
    let line: number;
    let nameEnd: number;
    if (index > 0) {
      const { view: entries, at: record } = this.#entry(index);
      if (record < 0) return -1;
      const nameLength = entries.getInt32(record + Entry.NameLength, true);
      kind = entries.getInt32(record + Entry.Kind, true) & ~FieldKind.InvalidValue;
      const room = this.#stringRoom(at, end);
      if (room < 0) return -1;
      line = this.#room(nameLength + room + 4);
      nameEnd = line + nameLength;
      const from = entries.getInt32(record + Entry.Line, true);
      copyBytes(view, line, entries, from, from + nameLength);
    } else {
      const nameRoom = this.#stringRoom(at, end);
      const valueAt = nameRoom < 0 ? -1 : this.#skipString(at, end);
      const valueRoom = valueAt < 0 ? -1 : this.#stringRoom(valueAt, end);
      if (valueRoom < 0) return -1;
      line = this.#room(nameRoom + valueRoom + 4);
      at = this.#string(at, end, line);
      if (at < 0) return -1;
      nameEnd = this.#stringEnd;
      kind = kindOfName(bytes, view, line, nameEnd);
      if (kind === FieldKind.Authority) {
        bytes.set(HOST_NAME, line);
        nameEnd = line + HOST_NAME.length;
      }
    }
    const valueStart = nameEnd + 2;
    at = this.#string(at, end, valueStart);
    if (at < 0) return -1;
    const valueEnd = this.#stringEnd;
    bytes[nameEnd] = 58;
    bytes[nameEnd + 1] = 32;
    bytes[valueEnd] = 13;
    bytes[valueEnd + 1] = 10;
    kind |= kindOfValue(bytes, view, valueStart, valueEnd);
    if (isAdded) this.#add(line, nameEnd - line, valueEnd - valueStart, kind);
    // Without use, the next line takes its place.
    if (!sink.isFull) this.#next = valueEnd + 2;
    sink.field(kind, line, nameEnd, valueStart, valueEnd);
    return at;
  }

  #add(line: number, nameLength: number, valueLength: number, kind: number): void {
    const to = this.#table.add(nameLength, valueLength, kind, 0);
    if (to < 0) return;
    copyBytes(this.#table.view, to, this.#memory.view, line, line + nameLength + valueLength + 4);
  }

  /** The entry of an index; `at` is -1 if there is none. The object is reused. */
  #entry(index: number): TableEntry {
    const entry = ENTRY;
    if (index <= STATIC_SIZE) {
      entry.view = STATIC_ENTRIES;
      entry.at = index === 0 ? -1 : (index - 1) * ENTRY_BYTES;
      return entry;
    }
    const place = index - STATIC_SIZE - 1;
    entry.view = this.#table.view;
    entry.at = place < this.#table.count ? this.#table.recordOf(place) : -1;
    return entry;
  }

  #stringEnd = 0;

  /** Reads a string to bytes[to …] and sets #stringEnd. Returns the offset after its code, or -1. */
  #string(at: number, end: number, to: number): number {
    const { bytes } = this.#memory;
    const isHuffman = bytes[at]! >= 0x80;
    const start = this.#integer(at, end, 0x7f);
    if (start < 0) return -1;
    const length = this.#integerValue;
    if (length > end - start) return -1;
    if (!isHuffman) {
      this.#memory.copy(to, start, start + length);
      this.#stringEnd = to + length;
      return start + length;
    }
    const decoded = huffmanDecode(bytes, start, start + length, to);
    this.#stringEnd = decoded;
    return decoded < 0 ? -1 : start + length;
  }

  /** Returns an upper bound for the text of the string at `at`, or -1 if it is incomplete. */
  #stringRoom(at: number, end: number): number {
    if (at >= end) return -1;
    const isHuffman = this.#memory.bytes[at]! >= 0x80;
    const start = this.#integer(at, end, 0x7f);
    if (start < 0 || this.#integerValue > end - start) return -1;
    return isHuffman ? maxDecodedLength(this.#integerValue) : this.#integerValue;
  }

  /** Returns the offset after the complete string at `at`, or -1 if nothing follows it. */
  #skipString(at: number, end: number): number {
    const next = this.#integer(at, end, 0x7f) + this.#integerValue;
    return next < end ? next : -1;
  }

  /** Reads an integer whose prefix is in the bits of `mask` (RFC 7541, section 5.1). Returns the offset after it, or -1. */
  #integer(at: number, end: number, mask: number): number {
    const { bytes } = this.#memory;
    let value = bytes[at++]! & mask;
    if (value === mask) {
      let scale = 1;
      for (;;) {
        if (at >= end) return -1;
        const byte = bytes[at++]!;
        value += (byte & 0x7f) * scale;
        if (value > MAX_INTEGER) return -1;
        if (byte < 0x80) break;
        scale *= 128;
        // Zeros that make an integer longer than it needs to be.
        if (scale > MAX_INTEGER) return -1;
      }
    }
    this.#integerValue = value;
    return at;
  }

  /** Returns an offset with `length` free bytes after it. */
  #room(length: number): number {
    if (this.#next + length <= this.#end) return this.#next;
    const size = Math.max(length, PIECE);
    this.#next = this.#memory.scratch(size);
    this.#end = this.#next + size;
    return this.#next;
  }
}

interface TableEntry {
  view: DataView;
  at: number;
}

const ENTRY: TableEntry = { view: STATIC_ENTRIES, at: -1 };
