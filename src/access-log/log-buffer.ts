// Bytes of log lines that wait to be written: grows as needed, and is filled without making strings.

/** Up to here a loop copies faster than set(), and it makes no view. */
const LOOP_BYTES = 48;

const encoder = new TextEncoder();

export class LogBuffer {
  bytes: Uint8Array;
  /** Bytes that are filled. Cutting it undoes what was appended. */
  length = 0;

  constructor(capacity: number) {
    this.bytes = new Uint8Array(capacity);
  }

  /** Makes room for so many bytes more. */
  reserve(count: number): void {
    if (this.length + count > this.bytes.length) this.#grow(this.length + count);
  }

  byte(value: number): void {
    this.reserve(1);
    this.bytes[this.length++] = value;
  }

  /** Copies source[start, end). */
  range(source: Uint8Array, start: number, end: number): void {
    this.reserve(end - start);
    const bytes = this.bytes;
    let at = this.length;
    if (end - start > LOOP_BYTES) bytes.set(source.subarray(start, end), at);
    else for (let from = start; from < end; from++) bytes[at++] = source[from]!;
    this.length += end - start;
  }

  /** Text in UTF-8, of which [start, end) is appended. */
  text(text: string, start = 0, end = text.length): void {
    this.reserve(end - start);
    const bytes = this.bytes;
    let at = this.length;
    for (let i = start; i < end; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) {
        this.length = at;
        this.#encode(text.slice(i, end));
        return;
      }
      bytes[at++] = code;
    }
    this.length = at;
  }

  /** A whole number in decimal. */
  number(value: number): void {
    if (value < 0 || value > 999_999_999) {
      this.text(String(value));
      return;
    }
    let digits = 1;
    for (let limit = 10; value >= limit; limit *= 10) digits++;
    this.digits(value, digits);
  }

  /** So many last digits of a whole number below 1e9, with zeros in front. */
  digits(value: number, count: number): void {
    this.reserve(count);
    const bytes = this.bytes;
    for (let at = this.length + count - 1; at >= this.length; at--) {
      const rest = (value / 10) | 0;
      bytes[at] = 48 + value - rest * 10;
      value = rest;
    }
    this.length += count;
  }

  latin1(): string {
    return Buffer.from(this.bytes.buffer, 0, this.length).toString('latin1');
  }

  #encode(text: string): void {
    this.reserve(text.length * 3);
    this.length += encoder.encodeInto(text, this.bytes.subarray(this.length)).written;
  }

  #grow(needed: number): void {
    const larger = new Uint8Array(Math.max(needed, this.bytes.length * 2));
    larger.set(this.bytes.subarray(0, this.length));
    this.bytes = larger;
  }
}
