// Writes the fields of a protobuf message into memory that is reused for the next message.

/** Bytes of the longest varint. */
const VARINT_BYTES = 10;
/** Up to this length a loop is faster than set(). */
const LOOP_BYTES = 200;

export class ProtobufWriter {
  #buffer = Buffer.allocUnsafeSlow(256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Copies the written bytes to `out`. */
  putTo(out: { put(bytes: Uint8Array, from: number, to: number): void }): void {
    out.put(this.#buffer, 0, this.#length);
  }

  /** Returns a copy of the written bytes. */
  copy(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#buffer.subarray(0, this.#length));
  }

  /** Returns a copy of the written bytes, preceded by their length as a varint. */
  delimited(): Uint8Array<ArrayBuffer> {
    const head = new ProtobufWriter();
    head.#varint(this.#length);
    const bytes = new Uint8Array(head.#length + this.#length);
    bytes.set(head.#buffer.subarray(0, head.#length));
    bytes.set(this.#buffer.subarray(0, this.#length), head.#length);
    return bytes;
  }

  clear(): void {
    this.#length = 0;
  }

  /** Writes a uint64, a non-negative int32 or an enum. */
  number(field: number, value: number): void {
    this.#tag(field, 0);
    this.#varint(value);
  }

  /** Writes a sint32 or sint64. */
  signed(field: number, value: number): void {
    this.#tag(field, 0);
    this.#varint(value < 0 ? -2 * value - 1 : 2 * value);
  }

  double(field: number, value: number): void {
    this.#tag(field, 1);
    this.#length = this.#buffer.writeDoubleLE(value, this.#length);
  }

  fixed32(field: number, value: number): void {
    this.#tag(field, 5);
    this.#length = this.#buffer.writeUInt32LE(value, this.#length);
  }

  fixed64(field: number, value: bigint): void {
    this.#tag(field, 1);
    this.#length = this.#buffer.writeBigUInt64LE(value, this.#length);
  }

  /** Writes an int64, which may be negative. */
  int64(field: number, value: bigint): void {
    this.#tag(field, 0);
    let rest = BigInt.asUintN(64, value);
    for (; rest >= 128n; rest >>= 7n) this.#buffer[this.#length++] = Number(rest & 127n) | 128;
    this.#buffer[this.#length++] = Number(rest);
  }

  string(field: number, text: string): void {
    const bytes = Buffer.byteLength(text);
    this.#tag(field, 2);
    this.#varint(bytes);
    this.#ensure(bytes);
    this.#length += this.#buffer.write(text, this.#length, 'utf8');
  }

  bytes(field: number, bytes: Uint8Array): void {
    this.#tag(field, 2);
    this.#varint(bytes.length);
    this.#ensure(bytes.length);
    this.#buffer.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** Writes bytes that are given as lower-case hexadecimal. */
  hex(field: number, digits: string): void {
    const bytes = digits.length >> 1;
    this.#tag(field, 2);
    this.#varint(bytes);
    this.#ensure(bytes);
    const buffer = this.#buffer;
    const start = this.#length;
    for (let i = 0; i < bytes; i++)
      buffer[start + i] = (nibble(digits.charCodeAt(2 * i)) << 4) | nibble(digits.charCodeAt(2 * i + 1));
    this.#length = start + bytes;
  }

  message(field: number, inner: ProtobufWriter): void {
    this.#tag(field, 2);
    this.#varint(inner.#length);
    this.#ensure(inner.#length);
    const buffer = this.#buffer;
    const { length } = inner;
    if (length > LOOP_BYTES) buffer.set(inner.#buffer.subarray(0, length), this.#length);
    else for (let i = 0, at = this.#length; i < length; i++) buffer[at++] = inner.#buffer[i]!;
    this.#length += length;
  }

  /** Writes the tag. Also makes room for a number after it. */
  #tag(field: number, wireType: number): void {
    this.#ensure(2 * VARINT_BYTES);
    this.#varint(field * 8 + wireType);
  }

  /** Writes a whole number up to 2^64. */
  #varint(value: number): void {
    const buffer = this.#buffer;
    let at = this.#length;
    for (; value >= 128; value = Math.floor(value / 128)) buffer[at++] = (value % 128) | 128;
    buffer[at++] = value;
    this.#length = at;
  }

  #ensure(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#buffer.length * 2, this.#length + bytes));
    larger.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = larger;
  }
}

function nibble(digit: number): number {
  return digit <= 57 ? digit - 48 : digit - 87;
}
