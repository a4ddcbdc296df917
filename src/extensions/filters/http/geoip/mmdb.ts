// Reads databases in the MaxMind DB file format 2.0 (https://maxmind.github.io/MaxMind-DB/).
//
// Files may come from anywhere: each access is within the file, and a look-up reads only the values on its way, in a bounded number of
// steps. Libraries decode whole records, which a small file can make as large as it likes.

/** Begins the metadata at the end of the file. */
const MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');
const MAX_METADATA = 128 * 1024;
/** Zeros between the search tree and the data. */
const SEPARATOR = 16;
/** Values that a look-up may read or pass over. */
const MAX_STEPS = 10_000;
const MAX_POINTERS = 8;
const MAX_TEXT = 1024;
/** Bits before an IPv4 address in a tree of IPv6 addresses. */
const IP4_PREFIX = 96;

/** Types of the data section. */
const enum Type {
  Extended = 0,
  Pointer = 1,
  Utf8 = 2,
  Double = 3,
  Bytes = 4,
  Uint16 = 5,
  Uint32 = 6,
  Map = 7,
  Int32 = 8,
  Uint64 = 9,
  Uint128 = 10,
  Array = 11,
  Boolean = 14,
  Float = 15,
}

/** A database that is not valid. */
export class MmdbError extends Error {}

/** Text as bytes, one character for each; an unsigned integer; or a boolean. */
export type MmdbValue = string | number | boolean;

/** What of a record is wanted: keys of maps, and indexes of arrays. */
export type MmdbPath = readonly string[];

export class Mmdb {
  /** When it was built, in seconds of Unix time. */
  readonly buildEpoch: number;
  readonly #bytes: Uint8Array;
  readonly #nodes: number;
  readonly #recordBits: number;
  readonly #isIp6: boolean;
  /** Where the data begins. */
  readonly #data: number;
  /** The node of the IPv4 addresses. */
  readonly #ip4Node: number;

  /** Throws an MmdbError. */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    const found = lastIndexOf(bytes, Math.max(0, bytes.length - MAX_METADATA));
    if (found < 0) throw new MmdbError('it is not a MaxMind DB: it has no metadata');
    const metadata = new Section(bytes, found + MARKER.length, bytes.length);
    const number = (key: string) => {
      const value = metadata.find(0, [key]);
      if (typeof value !== 'number') throw new MmdbError(`the metadata have no ${key}`);
      return value;
    };
    if (number('binary_format_major_version') !== 2) throw new MmdbError('it has another version than 2');
    this.#nodes = number('node_count');
    this.#recordBits = number('record_size');
    if (![24, 28, 32].includes(this.#recordBits)) throw new MmdbError(`record_size ${this.#recordBits} is not known`);
    const version = number('ip_version');
    if (version !== 4 && version !== 6) throw new MmdbError(`ip_version ${version} is not known`);
    this.#isIp6 = version === 6;
    this.buildEpoch = number('build_epoch');
    const treeBytes = (this.#nodes * this.#recordBits) / 4;
    this.#data = treeBytes + SEPARATOR;
    if (this.#data > found) throw new MmdbError('it is shorter than its search tree');
    this.#ip4Node = this.#isIp6 ? this.#walk(0, new Uint8Array(IP4_PREFIX / 8)) : 0;
  }

  /**
   * Returns the place of the record of an IP address of 4 or 16 bytes; undefined if there is none. Throws an MmdbError for an IPv6 address in a
   * database of IPv4 addresses, and where the file is damaged.
   */
  lookUp(ip: Uint8Array): number | undefined {
    if (ip.length === 16 && !this.#isIp6) throw new MmdbError('it has no IPv6 addresses');
    const node = this.#walk(ip.length === 4 ? this.#ip4Node : 0, ip);
    if (node === this.#nodes) return undefined;
    if (node < this.#nodes) throw new MmdbError('the search tree has no end');
    return node - this.#nodes - SEPARATOR;
  }

  /** Returns the values at `paths` of the record at `place`; undefined for those that it does not have. Throws an MmdbError. */
  values(place: number, paths: readonly MmdbPath[]): (MmdbValue | undefined)[] {
    const section = new Section(this.#bytes, this.#data, this.#bytes.length);
    return paths.map((path) => section.find(place, path));
  }

  /** Returns the node or the data to which the bits of an address lead. */
  #walk(node: number, ip: Uint8Array): number {
    for (let bit = 0; bit < ip.length * 8 && node < this.#nodes; bit++) {
      node = this.#child(node, (ip[bit >> 3]! >> (7 - (bit & 7))) & 1);
    }
    return node;
  }

  #child(node: number, side: number): number {
    const bytes = this.#bytes;
    const at = (node * this.#recordBits) / 4;
    if (this.#recordBits === 24) return uint(bytes, at + side * 3, 3);
    if (this.#recordBits === 32) return uint(bytes, at + side * 4, 4);
    const middle = bytes[at + 3]!;
    const high = side === 0 ? middle >> 4 : middle & 15;
    return high * 2 ** 24 + uint(bytes, at + side * 4, 3);
  }
}

/** A part of the file with values, whose pointers count from its beginning. */
class Section {
  readonly #bytes: Uint8Array;
  readonly #start: number;
  readonly #end: number;
  #steps = 0;
  /** Of the last control byte: type, size, and where the value begins. */
  #type: number = Type.Extended;
  #size = 0;
  #at = 0;

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.#bytes = bytes;
    this.#start = start;
    this.#end = end;
  }

  /** Returns the value at a path of the value at `place`; undefined if there is none, or it is of another type. */
  find(place: number, path: MmdbPath): MmdbValue | undefined {
    this.#open(this.#start + place);
    for (const key of path) if (!this.#enter(key)) return undefined;
    return this.#value();
  }

  /** Goes to the value of a key of the current map, or to an element of the current array. */
  #enter(key: string): boolean {
    const count = this.#size;
    let at = this.#at;
    if (this.#type === Type.Array) {
      const index = Number(key);
      if (!Number.isInteger(index) || index >= count) return false;
      for (let skipped = 0; skipped < index; skipped++) at = this.#skip(at);
      this.#open(at);
      return true;
    }
    if (this.#type !== Type.Map) return false;
    for (let entry = 0; entry < count; entry++) {
      const next = this.#skip(at);
      this.#open(at);
      if (!this.#isText) throw new MmdbError('a key is no text');
      const isFound = this.#size === key.length && this.#text() === key;
      if (isFound) {
        this.#open(next);
        return true;
      }
      at = this.#skip(next);
    }
    return false;
  }

  /** Reads the control bytes at `at`, and follows pointers. */
  #open(at: number): void {
    for (let pointers = 0; pointers <= MAX_POINTERS; pointers++) {
      this.#control(at);
      if (this.#type !== Type.Pointer) return;
      at = this.#start + this.#size;
    }
    throw new MmdbError('pointers lead to pointers');
  }

  /** Returns where the value ends that begins at `at`, with all values inside it. */
  #skip(at: number): number {
    for (let left = 1; left > 0; left--) {
      this.#control(at);
      at = this.#at;
      if (this.#type === Type.Map) left += 2 * this.#size;
      else if (this.#type === Type.Array) left += this.#size;
      else if (this.#type !== Type.Pointer && this.#type !== Type.Boolean) at += this.#size;
    }
    return at;
  }

  #control(at: number): void {
    if (++this.#steps > MAX_STEPS) throw new MmdbError('a record has too many values');
    const first = this.#byte(at++);
    let type = first >> 5;
    if (type === Type.Pointer) return this.#pointer(first, at);
    if (type === Type.Extended) type = this.#byte(at++) + 7;
    let size = first & 31;
    if (size >= 29) {
      const bytes = size - 28;
      size = (bytes === 1 ? 29 : bytes === 2 ? 285 : 65_821) + this.#number(at, bytes);
      at += bytes;
    }
    this.#type = type;
    this.#size = size;
    this.#at = at;
  }

  #pointer(first: number, at: number): void {
    const bytes = ((first >> 3) & 3) + 1;
    const high = bytes === 4 ? 0 : (first & 7) * 2 ** (8 * bytes);
    this.#type = Type.Pointer;
    this.#size = high + this.#number(at, bytes) + (bytes === 2 ? 2048 : bytes === 3 ? 526_336 : 0);
    this.#at = at + bytes;
  }

  #value(): MmdbValue | undefined {
    switch (this.#type) {
      case Type.Utf8:
        return this.#size <= MAX_TEXT ? this.#text() : undefined;
      case Type.Uint16:
      case Type.Uint32:
      case Type.Uint64:
        // Larger numbers than 2^53 do not occur.
        return this.#size <= 8 ? this.#number(this.#at, this.#size) : undefined;
      case Type.Boolean:
        return this.#size !== 0;
      default:
        return undefined;
    }
  }

  get #isText(): boolean {
    return this.#type === Type.Utf8;
  }

  #text(): string {
    const end = this.#at + this.#size;
    if (end > this.#end) throw new MmdbError('a value is beyond the end of the file');
    return String.fromCharCode(...this.#bytes.subarray(this.#at, end));
  }

  #number(at: number, length: number): number {
    if (at + length > this.#end) throw new MmdbError('a value is beyond the end of the file');
    return uint(this.#bytes, at, length);
  }

  #byte(at: number): number {
    if (at >= this.#end) throw new MmdbError('a value is beyond the end of the file');
    return this.#bytes[at]!;
  }
}

function uint(bytes: Uint8Array, at: number, length: number): number {
  let value = 0;
  for (let index = 0; index < length; index++) value = value * 256 + bytes[at + index]!;
  return value;
}

/** Returns the place of the last marker at or after `start`; -1: there is none. */
function lastIndexOf(bytes: Uint8Array, start: number): number {
  const found = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).lastIndexOf(MARKER);
  return found >= start ? found : -1;
}
