// Encodes header blocks (RFC 7541). Fields that repeat on a connection become references to the dynamic table.

import { copyBytes } from '../../../common/copy-bytes.js';
import { FOLD, knownHeader, OTHER_HEADER } from '../../../common/text/header-names.js';
import type { Memory } from '../../../io/memory.js';
import { DynamicTable } from './dynamic-table.js';
import { EntryIndex } from './entry-index.js';
import { huffmanEncode, huffmanLength } from './huffman.js';
import { Entry, STATIC_FIELDS, STATIC_INDEX_BY_ID, STATIC_SIZE } from './static-table.js';

/** Size of the dynamic table, unless the peer allows less: the default of the protocol. */
const MAX_TABLE_BYTES = 4096;

/** Tables with more entries than this have an index. */
const MAX_UNINDEXED = 16;

/** The most bytes that a field takes besides its name and value: a first byte, and two lengths below 2^28. */
export const FIELD_OVERHEAD = 12;
/** The most bytes of the size updates at the beginning of a block. */
export const BLOCK_OVERHEAD = 12;

/** First bytes of the representations (RFC 7541, section 6). */
const INDEXED = 0x80;
const INCREMENTAL = 0x40;
const SIZE_UPDATE = 0x20;
const NEVER_INDEXED = 0x10;
const NOT_INDEXED = 0x00;

/** Static indexes with a meaning of their own. */
export const enum StaticIndex {
  Authority = 1,
  MethodGet = 2,
  MethodPost = 3,
  Path = 4,
  PathIndex = 5,
  SchemeHttp = 6,
  SchemeHttps = 7,
  Status = 8,
}

export class HpackEncoder {
  readonly #memory: Memory;
  readonly #table: DynamicTable;
  /** Undefined: the entries are so few that they are compared one by one. */
  #index: EntryIndex | undefined;
  readonly #usesHuffman: boolean;
  /** The smallest limit that the peer has set since the last block, and the last one; -1 if it has set none. */
  #lowestLimit = -1;
  #limit = -1;

  constructor(memory: Memory, usesHuffman: boolean) {
    this.#memory = memory;
    this.#table = new DynamicTable(MAX_TABLE_BYTES);
    this.#usesHuffman = usesHuffman;
  }

  /** The size of the dynamic table. */
  get tableBytes(): number {
    return this.#table.bytes;
  }

  /** Called for the peer's SETTINGS_HEADER_TABLE_SIZE. The next block announces the size. */
  setLimit(bytes: number): void {
    const limit = Math.min(bytes, MAX_TABLE_BYTES);
    if (this.#limit < 0 && limit === this.#table.maxBytes) return;
    this.#lowestLimit = this.#limit < 0 ? limit : Math.min(this.#lowestLimit, limit);
    this.#limit = limit;
  }

  /** Begins a block at `to`. Returns the offset after what it begins with. */
  begin(to: number): number {
    if (this.#limit < 0) return to;
    if (this.#lowestLimit < this.#limit) to = this.#announce(to, this.#lowestLimit);
    to = this.#announce(to, this.#limit);
    this.#limit = this.#lowestLimit = -1;
    return to;
  }

  #announce(to: number, bytes: number): number {
    this.#table.resize(bytes);
    return this.#integer(to, SIZE_UPDATE, 0x1f, bytes);
  }

  /** Writes a field of the static table. */
  indexed(to: number, index: number): number {
    this.#memory.bytes[to] = INDEXED | index;
    return to + 1;
  }

  /** Writes :status. */
  status(to: number, status: number): number {
    const index = STATUS_INDEX[status];
    if (index !== undefined) return this.indexed(to, index);
    const { bytes } = this.#memory;
    bytes[to] = NOT_INDEXED | StaticIndex.Status;
    bytes[to + 1] = 3;
    bytes[to + 2] = 48 + Math.floor(status / 100);
    bytes[to + 3] = 48 + (Math.floor(status / 10) % 10);
    bytes[to + 4] = 48 + (status % 10);
    return to + 5;
  }

  /** Writes a pseudo-header with the name of a static entry, which the dynamic table does not take. */
  pseudo(to: number, nameIndex: number, valueStart: number, valueEnd: number): number {
    to = this.#integer(to, NOT_INDEXED, 0x0f, nameIndex);
    return this.#string(to, valueStart, valueEnd, IDENTITY);
  }

  /** Writes :authority. */
  authority(to: number, valueStart: number, valueEnd: number): number {
    return this.#indexable(to, AUTHORITY, StaticIndex.Authority, 0, 0, valueStart, valueEnd);
  }

  /** Writes a field whose name has the header ID `id`, in lower case. */
  field(to: number, id: number, nameStart: number, nameEnd: number, valueStart: number, valueEnd: number): number {
    if (id === OTHER_HEADER) {
      const nameHash = this.#nameHash(nameStart, nameEnd);
      const nameIndex = this.#staticName(nameHash, nameStart, nameEnd);
      if (nameIndex > 0 && IS_UNINDEXED_STATIC[nameIndex] === 1)
        return this.#literal(to, NOT_INDEXED, nameIndex, nameStart, nameEnd, valueStart, valueEnd);
      return this.#indexable(to, nameHash, nameIndex, nameStart, nameEnd, valueStart, valueEnd);
    }
    const nameIndex = STATIC_INDEX_BY_ID[id]!;
    switch (INDEXING[id]) {
      case Indexing.NeverIfShort:
        if (valueEnd - valueStart >= MIN_INDEXED_COOKIE) break;
        return this.#literal(to, NEVER_INDEXED, nameIndex, nameStart, nameEnd, valueStart, valueEnd);
      case Indexing.Never:
        return this.#literal(to, NEVER_INDEXED, nameIndex, nameStart, nameEnd, valueStart, valueEnd);
      case Indexing.No:
        return this.#literal(to, NOT_INDEXED, nameIndex, nameStart, nameEnd, valueStart, valueEnd);
    }
    return this.#indexable(to, id, nameIndex, nameStart, nameEnd, valueStart, valueEnd);
  }

  /** Writes a reference to an equal entry, or a literal that becomes an entry. `kind`: header ID, AUTHORITY, or a hash of the name. */
  #indexable(
    to: number,
    kind: number,
    nameIndex: number,
    nameStart: number,
    nameEnd: number,
    valueStart: number,
    valueEnd: number,
  ): number {
    const hash = this.#hash(kind, valueStart, valueEnd);
    const entry = this.#findField(kind, hash, nameStart, nameEnd, valueStart, valueEnd);
    if (entry >= 0) return this.#integer(to, INDEXED, 0x7f, STATIC_SIZE + 1 + entry);
    if (nameIndex === 0) nameIndex = this.#findName(kind, nameStart, nameEnd);
    to = this.#literal(to, INCREMENTAL, nameIndex, nameStart, nameEnd, valueStart, valueEnd);
    this.#add(kind, hash, nameStart, nameEnd, valueStart, valueEnd);
    return to;
  }

  /** Returns the entry of a field, or -1. */
  #findField(
    kind: number,
    hash: number,
    nameStart: number,
    nameEnd: number,
    valueStart: number,
    valueEnd: number,
  ): number {
    const index = this.#index;
    const table = this.#table;
    const { count, view } = table;
    let entry = index === undefined ? 0 : index.firstField(hash);
    for (; entry < count; entry = index === undefined ? entry + 1 : index.nextField(entry)) {
      const at = table.recordOf(entry);
      if (view.getInt32(at + Entry.Hash, true) !== hash || view.getInt32(at + Entry.Kind, true) !== kind) continue;
      if (kind < 0 && !this.#hasName(at, nameStart, nameEnd)) continue;
      if (this.#hasValue(at, valueStart, valueEnd)) return entry;
    }
    return -1;
  }

  /** Returns the index of the newest entry with a name, or 0. */
  #findName(kind: number, nameStart: number, nameEnd: number): number {
    const index = this.#index;
    const table = this.#table;
    const { count, view } = table;
    let entry = index === undefined ? 0 : index.firstName(kind);
    for (; entry < count; entry = index === undefined ? entry + 1 : index.nextName(entry)) {
      const at = table.recordOf(entry);
      if (view.getInt32(at + Entry.Kind, true) !== kind) continue;
      if (kind > 0 || this.#hasName(at, nameStart, nameEnd)) return STATIC_SIZE + 1 + entry;
    }
    return 0;
  }

  #add(kind: number, hash: number, nameStart: number, nameEnd: number, valueStart: number, valueEnd: number): void {
    const isAuthority = kind === AUTHORITY;
    const nameLength = isAuthority ? AUTHORITY_LENGTH : nameEnd - nameStart;
    const at = this.#table.add(nameLength, valueEnd - valueStart, kind, hash);
    if (at < 0) return;
    if (this.#index !== undefined) this.#index.add(hash, kind);
    else if (this.#table.count > MAX_UNINDEXED) this.#index = this.#makeIndex();
    const { view: table } = this.#table;
    const { bytes, view } = this.#memory;
    // A name with a header ID is not compared.
    if (kind < 0) for (let i = 0; i < nameLength; i++) table.setUint8(at + i, FOLD[bytes[nameStart + i]!]!);
    copyBytes(table, at + nameLength, view, valueStart, valueEnd);
  }

  #makeIndex(): EntryIndex {
    const index = new EntryIndex();
    const table = this.#table;
    for (let entry = table.count - 1; entry >= 0; entry--) {
      const at = table.recordOf(entry);
      index.add(table.view.getInt32(at + Entry.Hash, true), table.view.getInt32(at + Entry.Kind, true));
    }
    return index;
  }

  #hasName(record: number, start: number, end: number): boolean {
    const { view } = this.#table;
    const length = end - start;
    if (view.getInt32(record + Entry.NameLength, true) !== length) return false;
    const line = view.getInt32(record + Entry.Line, true);
    const { bytes } = this.#memory;
    for (let i = 0; i < length; i++) if (view.getUint8(line + i) !== FOLD[bytes[start + i]!]) return false;
    return true;
  }

  #hasValue(record: number, start: number, end: number): boolean {
    const { view: table } = this.#table;
    const length = end - start;
    if (table.getInt32(record + Entry.ValueLength, true) !== length) return false;
    const value = table.getInt32(record + Entry.Line, true) + table.getInt32(record + Entry.NameLength, true);
    const { bytes, view } = this.#memory;
    let i = 0;
    for (; i + 4 <= length; i += 4) {
      if (table.getInt32(value + i, true) !== view.getInt32(start + i, true)) return false;
    }
    for (; i < length; i++) if (table.getUint8(value + i) !== bytes[start + i]) return false;
    return true;
  }

  #hash(kind: number, start: number, end: number): number {
    const { bytes, view } = this.#memory;
    let hash = kind;
    let at = start;
    for (; at + 4 <= end; at += 4) {
      hash = Math.imul(hash ^ view.getInt32(at, true), HASH_FACTOR);
      hash ^= hash >>> 15;
    }
    for (; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, HASH_FACTOR);
    return hash ^ (hash >>> 13);
  }

  /** Returns a negative hash of the name, so that it differs from every header ID. */
  #nameHash(start: number, end: number): number {
    const { bytes } = this.#memory;
    let hash = end - start;
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ FOLD[bytes[at]!]!, HASH_FACTOR);
    return hash | 0x80000000;
  }

  /** Returns the static index of a name without header ID, or 0. */
  #staticName(nameHash: number, start: number, end: number): number {
    const index = STATIC_BY_HASH[(nameHash >>> 8) & STATIC_HASH_MASK]!;
    if (index === 0) return 0;
    const { name } = STATIC_FIELDS[index]!;
    if (name.length !== end - start) return 0;
    const { bytes } = this.#memory;
    for (let i = 0; i < name.length; i++) if (FOLD[bytes[start + i]!] !== name.charCodeAt(i)) return 0;
    return index;
  }

  #literal(
    to: number,
    first: number,
    nameIndex: number,
    nameStart: number,
    nameEnd: number,
    valueStart: number,
    valueEnd: number,
  ): number {
    to = this.#integer(to, first, first === INCREMENTAL ? 0x3f : 0x0f, nameIndex);
    if (nameIndex === 0) to = this.#string(to, nameStart, nameEnd, FOLD);
    return this.#string(to, valueStart, valueEnd, IDENTITY);
  }

  /** Writes bytes[start, end), mapped by `fold`, in the shorter form. */
  #string(to: number, start: number, end: number, fold: Uint8Array): number {
    const { bytes } = this.#memory;
    const length = end - start;
    if (this.#usesHuffman) {
      const encoded = huffmanLength(bytes, start, end, fold);
      if (encoded < length) {
        to = this.#integer(to, 0x80, 0x7f, encoded);
        return huffmanEncode(bytes, start, end, to, fold);
      }
    }
    to = this.#integer(to, 0, 0x7f, length);
    if (fold === IDENTITY) this.#memory.copy(to, start, end);
    else for (let i = 0; i < length; i++) bytes[to + i] = fold[bytes[start + i]!]!;
    return to + length;
  }

  #integer(to: number, first: number, mask: number, value: number): number {
    const { bytes } = this.#memory;
    if (value < mask) {
      bytes[to] = first | value;
      return to + 1;
    }
    bytes[to++] = first | mask;
    value -= mask;
    for (; value >= 0x80; value >>>= 7) bytes[to++] = (value & 0x7f) | 0x80;
    bytes[to] = value;
    return to + 1;
  }
}

const HASH_FACTOR = 0x9e3779b1 | 0;
const IDENTITY = Uint8Array.from({ length: 256 }, (_, byte) => byte);
/** A kind that is not a header ID. */
const AUTHORITY = 1000;
const AUTHORITY_LENGTH = ':authority'.length;

const STATUS_INDEX: readonly (number | undefined)[] = /* @__PURE__ */ indexByStatus();

const enum Indexing {
  Yes = 0,
  /** The value is unlikely to repeat. */
  No = 1,
  /** The value is secret, and short enough to be guessed through the table (RFC 7541, section 7.1.3). */
  Never = 2,
  /** The same, but only below MIN_INDEXED_COOKIE. */
  NeverIfShort = 3,
}

const MIN_INDEXED_COOKIE = 20;

const INDEXING = /* @__PURE__ */ indexingById();
/** Static names without header ID whose values are unlikely to repeat. */
const UNINDEXED = [
  'age',
  'content-range',
  'etag',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'range',
];
const IS_UNINDEXED_STATIC = Uint8Array.from(STATIC_FIELDS, ({ name }) => (UNINDEXED.includes(name) ? 1 : 0));

const STATIC_HASH_MASK = 1023;
/** Static indexes of the names without header ID, by hash. */
const STATIC_BY_HASH = /* @__PURE__ */ staticByHash();

function indexByStatus(): (number | undefined)[] {
  const indexes: (number | undefined)[] = [];
  STATIC_FIELDS.forEach(({ name, value }, index) => {
    if (name === ':status') indexes[Number(value)] = index;
  });
  return indexes;
}

function indexingById(): Uint8Array {
  const indexing = new Uint8Array(64);
  for (const name of ['content-length', 'location', 'x-request-id', 'set-cookie'] as const)
    indexing[knownHeader(name)] = Indexing.No;
  indexing[knownHeader('cookie')] = Indexing.NeverIfShort;
  for (const name of ['authorization', 'proxy-authorization'] as const) indexing[knownHeader(name)] = Indexing.Never;
  return indexing;
}

function staticByHash(): Uint8Array {
  const indexes = new Uint8Array(STATIC_HASH_MASK + 1);
  for (let index = STATIC_SIZE; index > 0; index--) {
    const { name } = STATIC_FIELDS[index]!;
    let hash = name.length;
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), HASH_FACTOR);
    indexes[((hash | 0x80000000) >>> 8) & STATIC_HASH_MASK] = index;
  }
  return indexes;
}
