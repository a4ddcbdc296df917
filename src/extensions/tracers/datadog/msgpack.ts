// Writes MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md), as far as Datadog's traces need it.

export class MsgpackWriter {
  #buffer = Buffer.allocUnsafe(1024);
  #length = 0;

  finish(): Uint8Array {
    return new Uint8Array(this.#buffer.subarray(0, this.#length));
  }

  array(count: number): void {
    this.#head(0x90, 15, 0xdc, count);
  }

  map(count: number): void {
    this.#head(0x80, 15, 0xde, count);
  }

  /** Writes text with one character per byte as a string. */
  text(text: string): void {
    const { length } = text;
    this.#ensure(length + 5);
    if (length < 32) this.#byte(0xa0 | length);
    else if (length < 256) {
      this.#byte(0xd9);
      this.#byte(length);
    } else {
      this.#byte(0xdb);
      this.#length = this.#buffer.writeUInt32BE(length, this.#length);
    }
    this.#length += this.#buffer.write(text, this.#length, 'latin1');
  }

  unsigned(value: bigint): void {
    this.#ensure(9);
    this.#byte(0xcf);
    this.#length = this.#buffer.writeBigUInt64BE(value, this.#length);
  }

  signed(value: bigint): void {
    this.#ensure(9);
    this.#byte(0xd3);
    this.#length = this.#buffer.writeBigInt64BE(value, this.#length);
  }

  double(value: number): void {
    this.#ensure(9);
    this.#byte(0xcb);
    this.#length = this.#buffer.writeDoubleBE(value, this.#length);
  }

  raw(bytes: Uint8Array): void {
    this.#ensure(bytes.length);
    this.#buffer.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #head(short: number, most: number, long: number, count: number): void {
    this.#ensure(5);
    if (count <= most) return this.#byte(short | count);
    this.#byte(long + 1);
    this.#length = this.#buffer.writeUInt32BE(count, this.#length);
  }

  #byte(value: number): void {
    this.#buffer[this.#length++] = value;
  }

  #ensure(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + bytes));
    larger.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = larger;
  }
}
