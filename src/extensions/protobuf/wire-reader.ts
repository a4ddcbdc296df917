// Reads the fields of an encoded protobuf message (https://protobuf.dev/programming-guides/encoding/).

/** Thrown for bytes that are not a valid message. */
export class WireError extends Error {}

export const enum WireType {
  Varint = 0,
  Fixed64 = 1,
  Bytes = 2,
  StartGroup = 3,
  EndGroup = 4,
  Fixed32 = 5,
}

const VARINT_BYTES = 10;
/** Groups within groups that are skipped. */
const MAX_GROUPS = 100;

export class WireReader {
  readonly bytes: Buffer;
  at: number;
  readonly end: number;
  /** The field number of the last tag. */
  field = 0;
  wireType: WireType = WireType.Varint;

  /** Reads bytes[start, end). */
  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  /** Reads the next tag into `field` and `wireType`. Returns false at the end of the message. */
  next(): boolean {
    if (this.at >= this.end) return false;
    const tag = this.uint32();
    this.field = tag >>> 3;
    this.wireType = tag & 7;
    if (this.field === 0 || this.wireType > WireType.Fixed32) throw new WireError(`invalid tag: ${tag}`);
    return true;
  }

  /** Reads a varint. The upper 32 bits are dropped. */
  uint32(): number {
    let value = 0;
    for (let count = 0; count < VARINT_BYTES; count++) {
      const byte = this.#byte();
      if (count < 5) value |= (byte & 127) << (7 * count);
      if (byte < 128) return value >>> 0;
    }
    throw new WireError('a varint is longer than 10 bytes');
  }

  uint64(): bigint {
    let low = 0;
    let high = 0;
    for (let count = 0; count < VARINT_BYTES; count++) {
      const byte = this.#byte();
      // 28 bits in the first four bytes, and the rest in the others.
      if (count < 4) low |= (byte & 127) << (7 * count);
      else high += (byte & 127) * 2 ** (7 * (count - 4));
      if (byte < 128) return high === 0 ? BigInt(low) : BigInt.asUintN(64, BigInt(low) + (BigInt(high) << 28n));
    }
    throw new WireError('a varint is longer than 10 bytes');
  }

  fixed32(): number {
    return this.bytes.readUInt32LE(this.#skipBytes(4));
  }

  fixed64(): bigint {
    return this.bytes.readBigUInt64LE(this.#skipBytes(8));
  }

  float(): number {
    return this.bytes.readFloatLE(this.#skipBytes(4));
  }

  double(): number {
    return this.bytes.readDoubleLE(this.#skipBytes(8));
  }

  /** Returns a view of a field with a length. */
  range(): Buffer {
    const { start, end } = this.#range();
    return this.bytes.subarray(start, end);
  }

  /** Returns a reader of a field with a length: a message, or packed numbers. */
  inner(): WireReader {
    const { start, end } = this.#range();
    return new WireReader(this.bytes, start, end);
  }

  text(): string {
    const { start, end } = this.#range();
    return this.bytes.toString('utf8', start, end);
  }

  /** Skips the value of the last tag. */
  skip(groups = 0): void {
    switch (this.wireType) {
      case WireType.Varint:
        return void this.uint32();
      case WireType.Fixed64:
        return void this.#skipBytes(8);
      case WireType.Bytes:
        return void this.#range();
      case WireType.Fixed32:
        return void this.#skipBytes(4);
      case WireType.StartGroup:
        return void this.skipGroup(groups);
      default:
        throw new WireError('a group ends that has not begun');
    }
  }

  /** Skips a group whose first tag has been read. Returns the offset of its last tag. */
  skipGroup(groups = 0): number {
    if (groups >= MAX_GROUPS) throw new WireError('groups are nested too deep');
    const { field } = this;
    for (let at = this.at; this.next(); at = this.at) {
      if (this.wireType === WireType.EndGroup && this.field === field) return at;
      this.skip(groups + 1);
    }
    throw new WireError('a group does not end');
  }

  #range(): { start: number; end: number } {
    const length = this.uint32();
    const start = this.#skipBytes(length);
    return { start, end: start + length };
  }

  /** Returns the offset of the next bytes, and skips them. */
  #skipBytes(count: number): number {
    const start = this.at;
    if (count > this.end - start) throw new WireError('unexpected EOF');
    this.at = start + count;
    return start;
  }

  #byte(): number {
    if (this.at >= this.end) throw new WireError('unexpected EOF');
    return this.bytes[this.at++]!;
  }
}
