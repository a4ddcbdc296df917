// Writes a protobuf message whose length is not known in advance, with nested messages in place.

const FIRST_BYTES = 256;
const VARINT_BYTES = 10;

export class WireWriter {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length: number;

  /** Leaves `reserved` bytes for a header. */
  constructor(reserved = 0) {
    this.#length = reserved;
  }

  get length(): number {
    return this.#length;
  }

  /** Returns a view of the bytes, valid until the next write. */
  get written(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  tag(field: number, wireType: number): void {
    this.uint64(BigInt(field * 8 + wireType));
  }

  uint32(value: number): void {
    this.#ensure(VARINT_BYTES);
    for (; value >= 128; value >>>= 7) this.#bytes[this.#length++] = (value & 127) | 128;
    this.#bytes[this.#length++] = value;
  }

  /** Writes a varint of 64 bits; a negative value as its two's complement. */
  uint64(value: bigint): void {
    if (value >= 0n && value < 0x8000_0000n) return this.uint32(Number(value));
    this.#ensure(VARINT_BYTES);
    let rest = BigInt.asUintN(64, value);
    for (; rest >= 128n; rest >>= 7n) this.#bytes[this.#length++] = Number(rest & 127n) | 128;
    this.#bytes[this.#length++] = Number(rest);
  }

  fixed32(value: number): void {
    this.#ensure(4);
    this.#length = this.#bytes.writeUInt32LE(value >>> 0, this.#length);
  }

  fixed64(value: bigint): void {
    this.#ensure(8);
    this.#length = this.#bytes.writeBigUInt64LE(BigInt.asUintN(64, value), this.#length);
  }

  float(value: number): void {
    this.#ensure(4);
    this.#length = this.#bytes.writeFloatLE(value, this.#length);
  }

  double(value: number): void {
    this.#ensure(8);
    this.#length = this.#bytes.writeDoubleLE(value, this.#length);
  }

  /** Writes text with one character a byte, and its length. */
  byteText(text: string): void {
    this.uint32(text.length);
    this.#ensure(text.length);
    this.#length += this.#bytes.write(text, this.#length, 'latin1');
  }

  /** Writes bytes and their length. */
  bytes(bytes: Uint8Array): void {
    this.uint32(bytes.length);
    this.raw(bytes);
  }

  /** Writes bytes as they are. */
  raw(bytes: Uint8Array): void {
    this.#ensure(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** Begins a part with a length. Returns a mark for end(). */
  begin(): number {
    this.#ensure(VARINT_BYTES);
    this.#bytes[this.#length++] = 0;
    return this.#length;
  }

  /** Ends the part that begins at `mark`, and writes its length before it. `extra`: bytes that belong to the part and follow later. */
  end(mark: number, extra = 0): void {
    const length = this.#length - mark + extra;
    const more = lengthBytes(length) - 1;
    if (more > 0) {
      this.#ensure(more);
      this.#bytes.copyWithin(mark + more, mark, this.#length);
    }
    const after = this.#length + more;
    this.#length = mark - 1;
    this.uint32(length);
    this.#length = after;
  }

  /** Drops what has been written after an offset. */
  truncate(length: number): void {
    this.#length = length;
  }

  /** Overwrites 32 bits at an offset, with the highest byte first. */
  setUint32(at: number, value: number): void {
    this.#bytes.writeUInt32BE(value, at);
  }

  setByte(at: number, value: number): void {
    this.#bytes[at] = value;
  }

  #ensure(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#length + count));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

function lengthBytes(value: number): number {
  let count = 1;
  for (; value >= 128; value = Math.floor(value / 128)) count++;
  return count;
}
